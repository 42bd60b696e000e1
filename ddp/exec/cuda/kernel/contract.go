package kernel

import "fmt"

// A block of contract reads so many pixels of the large image at most, some three
// fragments of 16 for each warp, as far as their products fit into shared memory.
const contractPixels = 384

// contract makes the small image. Of a warp, a fragment of 16 pixels of the large image is
// a's rows, straight from memory, its channels are added up, and c's columns are the taps:
//
//	p[k, pixel] = Σₘ large[pixel, m] · w[m,k]           in shared memory, float32
//	small[n,i,j,c] = Σf,e p[(f,e,c), pixel under the tap]    in order, rounded once
//
// A tile reads a border of pixels that its neighbours read, too. Of 32 channels a thread
// has the 8 from 8t on, 16 bytes, which are in order its words of two fragments; of what is
// left it has 4, then 2.
func (k *few) contract() ([]Launch, error) {
	fragments, steps := ceil(k.taps(), 8), ceil(k.many, 16)
	k.contractTile(fragments * steps * 256)
	width, rows := k.tw+k.kw-1, k.th+k.kh-1
	columns, left, shift := width, fmt.Sprintf("j0 - %d", k.padL), 0
	if k.tw == k.sw && k.lw < width { // whole rows
		columns, left, shift = k.lw, "0", k.padL
	}
	pixels, pitch := rows*columns, fewPitch(rows*width)
	k.weight()
	k.channels()
	k.fetchPixel(columns, pixels, steps)
	k.pointer("const bf16", "large", k.large.value)
	k.pointer("const "+ctype(k.w.dtype), "w", k.w.value)
	k.pointer("bf16", "small", k.small.value)
	k.line(`KERNEL_SYNC(NAME, %d, struct NAME_args) {
	enum { STEPS = %d, FRAGMENTS = %d, ROUNDS = %d, K = %d, PITCH = %d };
	SHARED(float, ps, [K * PITCH]);
	SHARED(u32, ws, [STEPS * FRAGMENTS * 64]);
	%s
	UNROLL
	for (int e = 0; e < %d; e++) {
		const int q = TID + e * %[1]d, h = q %% 2, m = channel(q / 64 / FRAGMENTS, h, q / 2 %% 4), k = q / 64 %% FRAGMENTS * 8 + q / 8 %% 8;
		const u32 w = weight(a.w, m, k) | weight(a.w, m + 1, k) << 16;
		if (q < STEPS * FRAGMENTS * 64)
			ws[q] = w;
	}`, Block, steps, fragments, ceil(pixels, 16*8), k.taps(), pitch, firstTile, ceil(steps*fragments*64, Block))
	k.contractBorder(rows, width, columns, shift)
	k.line(`	for (idx tile = first; tile < end; tile++) {
		int id = TID;
		AGAIN(id);
		id &= 255; // of a block
		const int warp = id / 32, lane = id %% 32, g = lane / 4, t = lane %% 4;
		%s
		const int top = i0 - %d, left = %s;
		u32 x[2][STEPS * 2];
		UNROLL
		for (int e = 0; e < 2; e++)
			fetch(x[e], a.large, image, top, left, warp * 16 + e * 8 + g, t);
		SYNC();`, k.place("tile"), k.padT, left)
	k.contractRounds(columns, width, pixels, shift)
	k.contractTaps(width)
	l, err := k.launch("contract", k.each(k.tiles(k.sh, k.sw)))
	return []Launch{l}, err
}

// contractRounds writes the lines that make the products of a tile, whose pixels are in rows
// of so many columns, and lie in rows of that width, from column shift on.
func (k *few) contractRounds(columns, width, pixels, shift int) {
	inside := ""
	if shift < 0 || shift+columns > width {
		inside = fmt.Sprintf(" && s >= 0 && s < %d", width)
	}
	k.line(`		UNROLL
		for (int u = 0; u < ROUNDS; u++) {
			float c[FRAGMENTS][4];
			UNROLL
			for (int e = 0; e < FRAGMENTS * 4; e++)
				c[e / 4][e %% 4] = 0;
			UNROLL
			for (int s = 0; s < STEPS; s++) {
				UNROLL
				for (int n = 0; n < FRAGMENTS; n++) {
					const uint2 b = ((const uint2 *)ws)[(s * FRAGMENTS + n) * 32 + lane];
					MMA(c[n], x[0][2 * s], x[1][2 * s], x[0][2 * s + 1], x[1][2 * s + 1], b.x, b.y);
				}
			}
			UNROLL
			for (int e = 0; e < 2 && u + 1 < ROUNDS; e++)
				fetch(x[e], a.large, image, top, left, ((u + 1) * 8 + warp) * 16 + e * 8 + g, t);
			UNROLL
			for (int h = 0; h < 2; h++) {
				const int p = (u * 8 + warp) * 16 + h * 8 + g, r = p / %d, s = p - r * %[1]d + %[2]d;
				float *to = ps + 2 * t * PITCH + r * %[3]d + s;
				if (p < %[4]d%[5]s) {
					UNROLL
					for (int e = 0; e < FRAGMENTS * 2; e++)
						if (e / 2 * 8 + 8 <= K || e / 2 * 8 + e %% 2 + 2 * t < K)
							to[(e / 2 * 8 + e %% 2) * PITCH] = c[e / 2][h * 2 + e %% 2];
				}
			}
		}
		SYNC();`, columns, shift, width, pixels, inside)
}

// contractBorder writes the lines that put 0 where no pixel's products come: in columns
// beside an image that is read in whole rows.
func (k *few) contractBorder(rows, width, columns, shift int) {
	before, after := max(0, shift), min(width, shift+columns)
	border := width - (after - before)
	if border == 0 {
		return
	}
	k.line(`	for (int q = TID; q < %d; q += %d) {
		const int r = q / %[3]d, s = q - r * %[3]d;
		ps[r / %[4]d * PITCH + r %% %[4]d * %[5]d + (s < %[6]d ? s : s + %[7]d)] = 0;
	}`, k.taps()*rows*border, Block, border, rows, width, before, after-before)
}

// fewPitch is what is between the products of two k, of so many: they are stored without
// conflicts where it is 4 more than a multiple of 16.
func fewPitch(n int) int { return n + (20-n%16)%16 }

// contractTile finds the tile, beside weights of so many bytes.
func (k *few) contractTile(weights int) {
	most := min(contractPixels, (fewShared-weights)/(4*k.taps())-16)
	for across := ceil(k.sw, 32); ; across++ {
		k.tw = ceil(k.sw, across)
		if rows := most/(k.tw+k.kw-1) - (k.kh - 1); rows > 0 {
			k.th = ceil(k.sh, ceil(k.sh, rows))
			break
		}
	}
	k.quot("across", ceil(k.sw, k.tw))
	k.quot("down", ceil(k.sh, k.th))
}

// channels adds the function that says which channels, the first of two, are in word h of
// fragment s of thread t; beyond the last where there are none.
func (k *few) channels() {
	text := "s * 16 + h * 8 + 2 * t"
	if k.many%8 == 0 {
		whole := k.many / 32 * 2
		text = fmt.Sprintf("s < %d ? s / 2 * 32 + 8 * t + s %% 2 * 4 + 2 * h : ", whole)
		rest := whole
		if k.many%32 >= 16 {
			text += fmt.Sprintf("s == %d ? %d + 4 * t + 2 * h : ", whole, whole*16)
			rest++
		}
		text += fmt.Sprintf("h == 0 ? %d + 2 * t : %d", rest*16, k.many)
	}
	k.helper(fmt.Sprintf("DEVICE int channel(int s, int h, int t) { return %s; }\n", text))
}

// fetchPixel adds the function that loads a thread's channels of pixel p of what a tile
// reads, which is so many pixels in rows of so many columns: 0 where there is none.
func (k *few) fetchPixel(columns, pixels, steps int) {
	body := ""
	switch whole := k.many / 32; {
	case k.many%8 != 0:
		body = fmt.Sprintf(`	UNROLL
	for (int e = 0; e < %d; e++) {
		const int m = channel(e / 2, e %% 2, t);
		v[e] = (alive && m < %d ? (u32)at[m] : 0) | (alive && m + 1 < %[2]d ? (u32)at[m + 1] << 16 : 0);
	}
`, 2*steps, k.many)
	default:
		for i := range whole {
			body += wordsOf("uint4", "alive", i*4, fmt.Sprintf("%d + 8 * t", i*32), 4)
		}
		if at := whole * 32; k.many%32 >= 16 {
			body += wordsOf("uint2", "alive", at/8, fmt.Sprintf("%d + 4 * t", at), 2)
		}
		if at := k.many / 16 * 16; k.many%16 != 0 {
			body += wordsOf("u32", "alive", at/8, fmt.Sprintf("%d + 2 * t", at), 1) + fmt.Sprintf("\tv[%d] = 0;\n", at/8+1)
		}
	}
	beside := ""
	if columns != k.lw {
		beside = fmt.Sprintf(" && column >= 0 && column < %d", k.lw)
	}
	k.helper(fmt.Sprintf(`DEVICE void fetch(u32 *v, const bf16 *large, idx image, int top, int left, int p, int t) {
	const int r = p / %d, row = top + r, column = left + p - r * %[1]d;
	const int alive = p < %[2]d && row >= 0 && row < %[3]d%[7]s;
	const bf16 *at = large + (alive ? ((image * %[3]d + row) * %[4]d + column) * %[5]d : 0);
%[6]s}
`, columns, pixels, k.lh, k.lw, k.many, body, beside))
}

// wordsOf is the text that loads n words from an element on, as one piece: 0 where not
// alive, which is no branch, so that loads need not wait for each other.
func wordsOf(ctype, alive string, to int, at string, n int) string {
	text := fmt.Sprintf("\t{\n\t\tconst int some = %s;\n\t\tconst bf16 *from = at + (some ? %s : 0);\n\t\tALIGNED(from, %d);\n\t\tconst %s o = *(const %[4]s *)from;\n", alive, at, 4*n, ctype)
	for i := range n {
		word := "o"
		if n > 1 {
			word = "o." + "xyzw"[i:i+1]
		}
		text += fmt.Sprintf("\t\tv[%d] = some ? %s : 0;\n", to+i, word)
	}
	return text + "\t}\n"
}

// contractTaps writes the lines that add up the products under each pixel, and end the
// kernel.
func (k *few) contractTaps(width int) {
	k.line(`		UNROLL
		for (int u = 0; u < %d; u++) {
			const int q = id + u * %d, p = q / %d, o = q - p * %[3]d, r = p / %[4]d, s = p - r * %[4]d;
			if (%[5]s) {
				const float *from = ps + o * PITCH + r * %[6]d + s;
				float sum = 0;
				UNROLL
				for (int f = 0; f < %[7]d; f++) {
					UNROLL
					for (int e = 0; e < %[8]d; e++)
						sum += from[(f * %[8]d + e) * %[3]d * PITCH + f * %[6]d + e];
				}
				a.small[((image * %[9]d + i0 + r) * %[10]d + j0 + s) * %[3]d + o] = toBF16(sum);
			}
		}
	}
}`, ceil(k.th*k.tw*k.few, Block), Block, k.few, k.tw, k.alive(k.sh, k.sw, ceil(ceil(k.th*k.tw*k.few, Block)*Block, k.few)), width, k.kh, k.kw, k.sh, k.sw)
}
