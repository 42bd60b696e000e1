package linalg

import "fmt"

// Product is z (M,N) = A (M,K) · B (K,N), Batch times over, where a holds A, or Aᵀ
// if TransA, and b holds B, or Bᵀ if TransB. The matrices of a batch lie one behind
// the other. A vector is a matrix with an extent of 1.
type Product struct {
	Batch, M, N, K int
	TransA, TransB bool
	T              Types
}

func (p Product) String() string {
	t := func(b bool) string {
		if b {
			return "ᵀ"
		}
		return ""
	}
	return fmt.Sprintf("matmul %d of (%d,%d) = A%s (%d,%d) · B%s (%d,%d), %v", p.Batch, p.M, p.N, t(p.TransA), p.M, p.K, t(p.TransB), p.K, p.N, p.T)
}

func (p Product) Check() error {
	if p.Batch < 1 || p.M < 1 || p.N < 1 || p.K < 1 {
		return fmt.Errorf("%v: want every extent to be at least 1", p)
	}
	if err := p.T.check(); err != nil {
		return fmt.Errorf("%v: %w", p, err)
	}
	return nil
}

func (p Product) Flops() int64 {
	return 2 * int64(p.Batch) * int64(p.M) * int64(p.N) * int64(p.K)
}

func (p Product) Lens() (dst, a, b int64) {
	n, m, c, k := int64(p.Batch), int64(p.M), int64(p.N), int64(p.K)
	return n * m * c, n * m * k, n * k * c
}

func (p Product) Types() Types { return p.T }

func (p Product) With(t Types) Problem { p.T = t; return p }
