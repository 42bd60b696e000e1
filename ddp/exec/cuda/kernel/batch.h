/* The program of a batch: a block for each bblock, then what they point to, by offsets
 * in bytes from the program's beginning. */
struct bblock {
	i64 steps;              /* offset of struct bstep */
	i32 count, part, parts; /* points part·256 + …, each parts·256 further */
	i32 pad;
};

struct bstep {
	i64 points, code, operands, sums;
	i32 kind, round, ncode, nsums;
};

struct binstr {
	i32 op;
	u8 dst, x, y, z;
	double a;
	i64 at; /* of an operand */
};

struct boperand {
	void *p;
	i32 type, rank, dims[6], strides[6];
};

struct bsum {
	void *out;
	i64 results, terms;
	double count;
	i32 type, slot, how, threads, nkept, nover;
	i32 kept[6], keptStride[6], over[6], overStride[6];
};

DEVICE i64 batchOffset(i64 i, int n, const i32 *dims, const i32 *strides) {
	i64 o = 0;
	int p = (int)i;
	for (int k = n - 1; k > 0; k--) {
		const int q = p / dims[k];
		o += (i64)(p - q * dims[k]) * strides[k];
		p = q;
	}
	return n > 0 ? o + (i64)p * strides[0] : o;
}
