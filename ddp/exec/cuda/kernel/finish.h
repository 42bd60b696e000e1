struct finishing {
	const void *part, *squares; /* double, or i64 for results that are integers */
	void *out;
	double count;
	i64 results, terms;
	i64 kept[6], keptStride[6], over[6], overStride[6];
	i32 nkept, nover, threads, type, how, first;
};

DEVICE i64 finishOffset(i64 i, int n, const i64 *dims, const i64 *strides) {
	i64 o = 0;
	for (int k = n - 1; k > 0; k--) {
		const i64 q = i / dims[k];
		o += (i - q * dims[k]) * strides[k];
		i = q;
	}
	return n > 0 ? o + i * strides[0] : o;
}
