package kernel

import "fmt"

// expandTile is how many pixels of the large image a block makes: two fragments of 16 for
// each of its eight warps.
const expandTile = 256

// expand makes the large image. Of a warp, a fragment of 16 pixels is a's rows, the taps its
// columns; weights are b, in the order of their fragments in shared memory. Where a group of
// v fragments has 8v channels, columns 2t and 2t + 1 of fragment i are channels
// 2v·t + 2i and the next, so that a thread has 2v neighbours of a pixel.
func (k *few) expand() ([]Launch, error) {
	steps, fragments := ceil(k.taps(), 16), ceil(k.many, 8)
	k.tile(k.lh, k.lw, expandTile, 2, fragments*steps*256)
	k.weight()
	k.window()
	k.pointer("const bf16", "small", k.small.value)
	k.pointer("const "+ctype(k.w.dtype), "w", k.w.value)
	k.pointer("bf16", "large", k.large.value)
	k.line(`KERNEL_SYNC(NAME, %d, struct NAME_args) {
	enum { STEPS = %d, FRAGMENTS = %d, K = %d };
	SHARED(bf16, xs, [2][%d]);
	SHARED(u32, ws, [FRAGMENTS * STEPS * 64]);
	%s
	{
		%s
		window(xs[0], a.small, image, i0 - %d, j0 - %d, TID);
	}`, Block, steps, fragments, k.taps(), k.area(), firstTile, k.place("first"), k.padT, k.padL)
	k.expandWeights(steps, fragments)
	k.line(`	for (idx tile = first; tile < end; tile++) {
		int id = TID;
		AGAIN(id);
		id &= 255; // of a block
		const int warp = id / 32, lane = id %% 32, g = lane / 4, t = lane %% 4;
		const bf16 *at0 = xs[(tile - first) %% 2];
		SYNC();
		if (tile + 1 < end) {
			%[11]s
			window(xs[(tile + 1 - first) %% 2], a.small, image, i0 - %[12]d, j0 - %[13]d, id);
		}
		int tap[STEPS][2][2];
		UNROLL
		for (int e = 0; e < STEPS * 4; e++) {
			const int k = e / 4 * 16 + e / 2 %% 2 * 8 + 2 * t + e %% 2;
			tap[e / 4][e / 2 %% 2][e %% 2] = %[1]s;
		}
		%[2]s
		u32 x[4][STEPS][2];
		idx at[4];
		int alive[4];
		UNROLL
		for (int e = 0; e < 4; e++) {
			const int p = warp * 32 + e * 8 + g, r = p / %d, s = p - r * %[3]d;
			const bf16 *from = at0 + (p < %[4]d ? r * %[5]d + s * %[6]d : 0);
			alive[e] = %[7]s;
			at[e] = ((image * %[8]d + i0 + r) * %[9]d + j0 + s) * %[10]d;
			UNROLL
			for (int h = 0; h < STEPS * 2; h++) {
				const int *to = tap[h / 2][h %% 2], k = h * 8 + 2 * t;
				x[e][h / 2][h %% 2] = (h * 8 + 8 <= K || k < K ? (u32)from[to[0]] : 0) | (h * 8 + 8 <= K || k + 1 < K ? (u32)from[to[1]] << 16 : 0);
			}
		}`, k.tapAt(), k.place("tile"), k.tw, k.th*k.tw, k.pitch(), k.few, fmt.Sprintf("p < %d && i0 + r < %d && j0 + s < %d", k.th*k.tw, k.lh, k.lw), k.lh, k.lw, k.many, k.place("(tile + 1)"), k.padT, k.padL)
	for first, v := range groupsOf(fragments, 4) {
		k.expandGroup(first, v)
	}
	k.line("\t}\n}")
	l, err := k.launch("expand", k.each(k.tiles(k.lh, k.lw)))
	return []Launch{l}, err
}

// expandWeights writes the lines that bring the weights to shared memory.
func (k *few) expandWeights(steps, fragments int) {
	channel := "0"
	for first, v := range groupsOf(fragments, 4) { // the last group first in the text
		one := fmt.Sprintf("%d + n / 2 * %d + (f - %d) * 2 + n %% 2", first*8, 2*v, first)
		if first == 0 {
			channel = one
		} else {
			channel = fmt.Sprintf("f >= %d ? %s : %s", first, one, channel)
		}
	}
	k.line(`	UNROLL
	for (int e = 0; e < %d; e++) {
		const int q = TID + e * %d, h = q %% 2, n = q / 8 %% 8, f = q / 64 / STEPS, k = q / 64 %% STEPS * 16 + h * 8 + q / 2 %% 4 * 2;
		const int m = %s;
		if (q < FRAGMENTS * STEPS * 64)
			ws[q] = weight(a.w, m, k) | weight(a.w, m, k + 1) << 16;
	}`, ceil(fragments*steps*64, Block), Block, channel)
}

// expandGroup writes the lines that make and store 8v channels of a warp's pixels.
func (k *few) expandGroup(first, v int) {
	k.line(`		{
			float c[%d][2][4];
			UNROLL
			for (int i = 0; i < %[1]d; i++) {
				UNROLL
				for (int e = 0; e < 8; e++)
					c[i][e / 4][e %% 4] = 0;
				UNROLL
				for (int s = 0; s < STEPS; s++) {
					const uint2 b = ((const uint2 *)ws)[((%[2]d + i) * STEPS + s) * 32 + lane];
					UNROLL
					for (int y = 0; y < 2; y++)
						MMA(c[i][y], x[2 * y][s][0], x[2 * y + 1][s][0], x[2 * y][s][1], x[2 * y + 1][s][1], b.x, b.y);
				}
			}
			UNROLL
			for (int e = 0; e < 4; e++) {
				const int m = %[3]d + %[4]d * t;
				bf16 *to = a.large + at[e] + m;`, v, first, first*8, 2*v)
	if k.many%8 == 0 {
		name := k.storer(k.large.dtype, "float", 2*v)
		k.line("\t\t\t\tfloat y[%d];\n\t\t\t\tUNROLL\n\t\t\t\tfor (int i = 0; i < %[1]d; i++)\n\t\t\t\t\ty[i] = c[i / 2][e / 2][e %% 2 * 2 + i %% 2];\n\t\t\t\tif (alive[e])\n\t\t\t\t\t%s(to, y);", 2*v, name)
	} else {
		k.line("\t\t\t\tUNROLL\n\t\t\t\tfor (int i = 0; i < %d; i++)\n\t\t\t\t\tif (alive[e] && m + i < %d)\n\t\t\t\t\t\tto[i] = toBF16(c[i / 2][e / 2][e %% 2 * 2 + i %% 2]);", 2*v, k.many)
	}
	k.line("\t\t\t}\n\t\t}")
}
