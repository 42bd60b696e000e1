struct finishing {
	const void *part, *squares; /* double, or i64 for results that are integers */
	void *out;
	double count;
	i64 results, terms;
	i32 kept[6], keptStride[6], over[6], overStride[6];
	i32 nkept, nover, threads, type, how, first, blocks, pad;
};

DEVICE i64 finishOffset(i64 i, int n, const i32 *dims, const i32 *strides) {
	i64 o = 0;
	int p = (int)i;
	for (int k = n - 1; k > 0; k--) {
		const int q = p / dims[k];
		o += (i64)(p - q * dims[k]) * strides[k];
		p = q;
	}
	return n > 0 ? o + (i64)p * strides[0] : o;
}
