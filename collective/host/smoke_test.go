package host

import ("testing";"sync";"ebtrain/collective")

func TestSmoke(t *testing.T) {
	for _, n := range []int{1,2,3,8} {
	cs, err := NewLocal(t.Context(), n)
	if err != nil { t.Fatal(err) }
	var wg sync.WaitGroup
	for _, c := range cs {
		wg.Go(func() {
			b, err := c.Alloc(4*100000)
			if err != nil { t.Error(err); return }
			_ = b
			x := make([]float32, 1000003)
			for i := range x { x[i] = float32(c.Rank()+1) }
			for range 10 {
			if err := collective.Do(t.Context(), c, collective.Request{Kind: collective.AllReduce, Op: collective.Mean, Vec: collective.VecOf(x)}); err != nil { t.Error(err) }
			if x[777777] != float32(n+1)/2 { t.Error(x[777777]) }
			}
		})
	}
	wg.Wait()
	for _, c := range cs { if err := c.Close(); err != nil { t.Error(err) } }
	}
}
