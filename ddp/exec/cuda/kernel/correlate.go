package kernel

import "fmt"

// correlateTile is how many pixels a block of correlate has at once, and correlateBlocks
// how many blocks there are at most: two on each multiprocessor of an H200.
const correlateTile, correlateBlocks = 256, 264

// correlation is how the work of correlate is divided.
type correlation struct {
	rows   int // fragments of 16 taps
	splits int // of the channels, among warps
	q      int // fragments of 8 channels of a warp
	groups int // of warps, which divide the pixels
	rounds int // fragments of 16 pixels of a warp in a tile
	words  int // that a thread loads of a pixel
	depth  int // fragments of 16 pixels that a warp has asked for and not used yet
}

// mostSums is how many fragments of sums a warp holds at most, of 4 registers each, and
// mostWords how many words of pixels a thread waits for, as far as registers go that let two
// blocks run on a multiprocessor.
const mostSums, mostWords = 12, 32

// correlation divides the taps and channels, and with them the warps.
func (k *few) correlation() (c correlation) {
	fragments := ceil(k.many, 8)
	c.rows, c.splits = ceil(k.taps(), 16), 1
	for c.rows*ceil(fragments, c.splits) > mostSums {
		c.splits *= 2
	}
	c.q, c.groups = ceil(fragments, c.splits), 8/c.splits
	c.words = ceil(c.q, 2)
	return c
}

// walk divides the pixels of a tile.
func (c *correlation) walk(pixels int) {
	c.rounds = ceil(pixels, 16*c.groups)
	c.depth = min(c.rounds, mostWords/(4*c.words))
	for c.rounds%c.depth != 0 { // what is not asked for is not 0
		c.depth--
	}
}

// sums is how many numbers a thread holds.
func (c correlation) sums() int { return c.rows * c.q * 4 }

// shared is how many numbers the warps of a block leave for each other.
func (c correlation) shared() int { return max(1, c.groups/2*c.splits*c.sums()*32) }

// correlate makes the weights' gradient. Of a warp, a's rows are 16 taps, its columns 16
// pixels, which are added up, and c's columns are channels. A thread has 8, 4, 2 or 1
// neighbouring channels of four pixels, straight from memory, and pairs those of one
// channel. The warps of a block divide the pixels of its tiles and are added up at the end;
// the blocks' sums, by a second launch. All is in one order, whatever comes first.
//
//	part[block, split, sum, lane]     as a warp's threads hold them, float32
func (k *few) correlate() ([]Launch, error) {
	c := k.correlation()
	k.tile(k.lh, k.lw, correlateTile, 1, 4*c.shared())
	c.walk(k.th * k.tw)
	tiles := k.tiles(k.lh, k.lw)
	blocks := min(tiles, correlateBlocks)
	if k.m.crowded {
		blocks = ceil(tiles, mostTiles)
	}
	part := k.m.take(4 * 32 * blocks * c.splits * c.sums())
	k.window()
	k.fetchChannels(c)
	k.pointer("const bf16", "small", k.small.value)
	k.pointer("const bf16", "large", k.large.value)
	k.scratch("float", "part", part)
	k.int("tiles", tiles)
	k.params.small("rounds", c.rounds) // no constant: what is asked for in time would be asked for at once
	k.line(`KERNEL_SYNC(NAME, %d, struct NAME_args) {
	enum { ROWS = %d, Q = %d, SPLITS = %d, GROUPS = %d, DEPTH = %d, TH = %d, TW = %d };
	SHARED(bf16, xs, [%d]);
	SHARED(float, sh, [%d]);
	const int lane = TID %% 32, g = lane / 4, t = lane %% 4, split = TID / 32 %% SPLITS, group = TID / 32 / SPLITS;
	int tap[ROWS * 2];
	UNROLL
	for (int e = 0; e < ROWS * 2; e++) {
		const int k = e * 8 + g;
		tap[e] = %s;
	}
	float c[ROWS][Q][4];
	UNROLL
	for (int e = 0; e < ROWS * Q * 4; e++)
		c[e / 4 / Q][e / 4 %% Q][e %% 4] = 0;`, Block, c.rows, c.q, c.splits, c.groups, c.depth, k.th, k.tw, k.area(), c.shared(), k.tapAt())
	k.correlateTiles(c)
	k.correlateGroups()
	first, err := k.launch("correlate", blocks)
	if err != nil {
		return nil, err
	}
	second, err := k.combine(c, blocks, part)
	return []Launch{first, second}, err
}

// correlateTiles writes the loop over a block's tiles.
func (k *few) correlateTiles(c correlation) {
	k.line(`	for (idx tile = BID; tile < (idx)a.tiles; tile += GDIM) {
		%s
		u32 v[DEPTH][4][%d];
		UNROLL
		for (int e = 0; e < DEPTH * 4; e++)
			fetch(v[e / 4][e %% 4], a.large, image, i0, j0, (e / 4 * GROUPS + group) * 16 + e / 2 %% 2 * 8 + 2 * t + e %% 2, split, g);
		SYNC();
		window(xs, a.small, image, i0 - %d, j0 - %d, TID);
		SYNC();
		UNROLL1
		for (int round = 0; round < a.rounds; round += DEPTH) {
			UNROLL
			for (int d = 0; d < DEPTH; d++) {
				const int p = ((round + d) * GROUPS + group) * 16 + 2 * t;
				u32 x[ROWS * 2][2];
				const bf16 *at[4];
				UNROLL
				for (int e = 0; e < 4; e++) {
					const int q = p + e / 2 * 8 + e %% 2, r = q / TW, s = q - r * TW;
					at[e] = xs + (q < TH * TW ? r * %d + s * %d : 0);
				}
				UNROLL
				for (int e = 0; e < ROWS * 4; e++)
					x[e / 2][e %% 2] = (u32)at[e %% 2 * 2][tap[e / 2]] | (u32)at[e %% 2 * 2 + 1][tap[e / 2]] << 16;
				UNROLL
				for (int j = 0; j < Q; j++) {
					u32 b[2];
					UNROLL
					for (int h = 0; h < 2; h++) {
						const u32 one = v[d][2 * h][j / 2], two = v[d][2 * h + 1][j / 2];
						b[h] = j %% 2 == 0 ? (one & 0xffff) | two << 16 : one >> 16 | (two & 0xffff0000u);
					}
					UNROLL
					for (int y = 0; y < ROWS; y++)
						MMA(c[y][j], x[2 * y][0], x[2 * y + 1][0], x[2 * y][1], x[2 * y + 1][1], b[0], b[1]);
				}
				UNROLL
				for (int e = 0; e < 4 && round + d + DEPTH < a.rounds; e++)
					fetch(v[d][e], a.large, image, i0, j0, p + DEPTH * GROUPS * 16 + e / 2 * 8 + e %% 2, split, g);
			}
		}
	}`, k.place("tile"), c.words, k.padT, k.padL, k.pitch(), k.few)
}

// correlateGroups writes the lines that add up what the groups of warps hold, leave it for
// the second launch, and end the kernel.
func (k *few) correlateGroups() {
	k.line(`	UNROLL
	for (int d = GROUPS / 2; d > 0; d /= 2) {
		float *to = sh + (group %% d * SPLITS + split) * ROWS * Q * 128 + lane;
		SYNC();
		UNROLL
		for (int e = 0; e < ROWS * Q * 4; e++)
			if (group >= d && group < 2 * d)
				to[e * 32] = c[e / 4 / Q][e / 4 %% Q][e %% 4];
		SYNC();
		UNROLL
		for (int e = 0; e < ROWS * Q * 4; e++)
			if (group < d)
				c[e / 4 / Q][e / 4 %% Q][e %% 4] += to[e * 32];
	}
	float *to = a.part + ((idx)BID * SPLITS + split) * ROWS * Q * 128 + lane;
	UNROLL
	for (int e = 0; e < ROWS * Q * 4; e++)
		if (group == 0)
			to[e * 32] = c[e / 4 / Q][e / 4 %% Q][e %% 4];
}`)
}

// fetchChannels adds the function that loads a thread's channels of pixel p of a tile, as
// pairs of neighbours: 0 where there is no such pixel or channel. A warp's channels are in
// groups of 8v, of which thread g has the v from v·g on.
func (k *few) fetchChannels(c correlation) {
	body := ""
	for first, v := range groupsOf(c.q, 8) {
		m := fmt.Sprintf("split * %d + %d + %d * g", c.q*8, first*8, v)
		alive, padded := "alive", c.q*8*c.splits > k.many
		if padded {
			alive = fmt.Sprintf("alive && %s + %d <= %d", m, v, k.many)
		}
		switch word := first / 2; {
		case v > 1 && k.many%v == 0:
			body += wordsOf(vector(2*v), alive, word, m, v/2)
		default:
			for i := 0; i < v; i += 2 {
				body += fmt.Sprintf("\tv[%d] = alive && %s + %d < %d ? (u32)at[%[2]s + %[3]d] : 0;\n", word+i/2, m, i, k.many)
				if i+1 < v {
					body += fmt.Sprintf("\tv[%d] |= alive && %s + %d < %d ? (u32)at[%[2]s + %[3]d] << 16 : 0;\n", word+i/2, m, i+1, k.many)
				}
			}
		}
	}
	k.helper(fmt.Sprintf(`DEVICE void fetch(u32 *v, const bf16 *large, idx image, int i0, int j0, int p, int split, int g) {
	const int r = p / %d, s = p - r * %[1]d;
	const int alive = %[2]s;
	const bf16 *at = large + (alive ? ((image * %[3]d + i0 + r) * %[4]d + j0 + s) * %[5]d : 0);
%[6]s}
`, k.tw, k.alive(k.lh, k.lw, c.rounds*c.groups*16), k.lh, k.lw, k.many, body))
}

// combine adds up the sums of blocks: of 16 sums in each of its own, by 16 threads each, in
// float64.
func (k *few) combine(c correlation, blocks, part int) (Launch, error) {
	n := few{m: k.m, w: k.w, few: k.few, many: k.many, kh: k.kh, kw: k.kw, turned: k.turned, manyFirst: k.manyFirst}
	n.scratch("const float", "part", part)
	n.pointer(ctype(k.w.dtype), "w", k.w.value)
	n.int("blocks", blocks)
	channel := ""
	for first, v := range groupsOf(c.q, 8) {
		channel = fmt.Sprintf("j >= %d ? %d + %d * n + j - %[1]d : %[4]s", first, first*8, v, channel)
	}
	numbers := c.splits * c.sums() * 32
	n.line(`KERNEL_SYNC(NAME, %d, struct NAME_args) {
	SHARED(double, sh, [%[1]d]);
	const int at = BID * 16 + TID %% 16;
	double sum = 0;
	UNROLL8
	for (int b = TID / 16; b < (int)a.blocks; b += 16)
		sum += (double)a.part[(i64)b * %[2]d + at];
	sh[TID] = sum;
	SYNC();
	if (TID >= 16)
		return;
	UNROLL
	for (int e = 1; e < 16; e++)
		sum += sh[e * 16 + TID];
	const int lane = at %% 32, i = at / 32 %% 4, j = at / 128 %% %[3]d, y = at / 128 / %[3]d %% %[4]d, split = at / 128 / %[3]d / %[4]d;
	const int n = lane %% 4 * 2 + i %% 2, k = y * 16 + i / 2 * 8 + lane / 4, m = split * %[5]d + (%[6]s0);
	if (k < %[7]d && m < %[8]d)
		a.w[%[9]s] = %[10]s;
}`, Block, numbers, c.q, c.rows, c.q*8, channel, k.taps(), k.many, n.weightAt(), stored(k.w.dtype, "double", "sum"))
	return n.launch("combine", numbers/16)
}
