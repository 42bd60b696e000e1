package threads

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"ebtrain/ddp/exec/cpu/threads/threadstest"
)

// TestPool shows that every chunk of every job runs exactly once and is done
// when do returns, however jobs follow each other, and that no two chunks use
// one workspace at a time.
func TestPool(t *testing.T) {
	const maxCount = 9
	type workspace struct{ thread int }
	team := NewTeam(4)
	defer team.Close()
	p := New(team, func(i int) *workspace { return &workspace{i} })
	var busy [4]atomic.Int32
	var ran [maxCount]atomic.Int32
	f := func(chunk int, ws *workspace) {
		if busy[ws.thread].Add(1) != 1 {
			t.Errorf("workspace %d is used twice", ws.thread)
		}
		ran[chunk].Add(1)
		busy[ws.thread].Add(-1)
	}
	for job := range 3000 {
		chunks := 1 + job%maxCount
		p.Do(job%7 == 0, chunks, f)
		for i := range maxCount {
			want := int32(0)
			if i < chunks {
				want = 1
			}
			if got := ran[i].Swap(0); got != want {
				t.Fatalf("job %d of %d chunks: chunk %d ran %d times, want %d", job, chunks, i, got, want)
			}
		}
	}
}

// counter is a job that counts its parts, too big to share its memory with others.
type counter struct {
	parts atomic.Int64
	_     [64]float32
}

func (c *counter) Part(int, int, int) { c.parts.Add(1) }

// TestForgets: a job that is over is nobody's, though the team lives on.
func TestForgets(t *testing.T) {
	team := NewTeam(2)
	defer team.Close()
	pool, jobs := New(team, func(int) *int { return new(int) }), NewJobs(team, 0)
	for name, run := range map[string]func(c *counter){
		"pool": func(c *counter) { pool.Do(false, 8, func(int, *int) { c.Part(0, 0, 8) }) },
		"jobs": func(c *counter) { jobs.Run(c, 1) },
	} {
		left := func() weak.Pointer[counter] {
			c := new(counter)
			run(c)
			return weak.Make(c)
		}()
		if !threadstest.Forgotten(left) {
			t.Errorf("%s: the job is still reachable", name)
		}
	}
	runtime.KeepAlive(pool)
	runtime.KeepAlive(jobs)
}

// TestOwnChunksFirst: a thread does its own range from the first chunk on, the same of
// every job, and then helps those that follow it, from the last.
func TestOwnChunksFirst(t *testing.T) {
	team := &Team{spans: make([]span, 3)} // its threads are this test
	for range 2 {
		team.deal(8) // 0 1 | 2 3 4 | 5 6 7
		var got []int
		for {
			chunk, ok := team.claim(1)
			if !ok {
				break
			}
			if got = append(got, chunk); len(got) == 4 { // thread 0 begins late
				if chunk, ok := team.claim(0); !ok || chunk != 0 {
					t.Errorf("thread 0 claims %d, %v, want 0", chunk, ok)
				}
			}
		}
		if want := []int{2, 3, 4, 7, 6, 5, 1}; !slices.Equal(got, want) {
			t.Errorf("thread 1 claims %v, want %v", got, want)
		}
	}
}

// TestLook: a thread without work looks for chunks when a job has been posted, once, and
// then finds all of them.
func TestLook(t *testing.T) {
	team := &Team{spans: make([]span, 2)} // its threads are this test
	ran, during := 0, func() {}
	team.job = func(int, int) { ran++; during() }
	look := func(what string, seen, wantSeen uint32, want int) {
		t.Helper()
		ran = 0
		if got := team.look(1, seen); got != wantSeen || ran != want {
			t.Errorf("%s: job %d is seen and %d chunks run, want %d and %d", what, got, ran, wantSeen, want)
		}
	}
	team.spans[1].set(1, 0, 3)
	if team.attend(1); ran != 0 {
		t.Errorf("%d chunks run of a job that is not posted yet", ran)
	}
	look("not posted yet", 0, 0, 0)
	team.deal(4)
	look("posted", 0, 1, 4)
	team.spans[0].set(2, 0, 2)
	look("the next, not posted yet", 1, 1, 0)
	team.deal(5)
	during = func() { during = func() {}; team.deal(3) } // the first chunk is in hand
	look("another is posted meanwhile", 1, 2, 1+3)
	look("which is looked at again", 2, 3, 0)
	team.deal(6)
	ran = 0
	if team.attend(1); ran != 6 {
		t.Errorf("%d chunks of 6 run", ran)
	}
}

// TestManyChunks has more than are shared out at once, each of which runs once.
func TestManyChunks(t *testing.T) {
	team := NewTeam(2)
	defer team.Close()
	for _, chunks := range []int{maxChunks, maxChunks + 1, 2*maxChunks + 5} {
		ran := make([]atomic.Int32, chunks)
		team.Do(chunks, func(chunk, _ int) { ran[chunk].Add(1) })
		for i := range ran {
			if n := ran[i].Load(); n != 1 {
				t.Fatalf("of %d chunks, chunk %d ran %d times", chunks, i, n)
			}
		}
	}
}

// TestWokenEarly: a caller that is woken while a chunk is still under way, by a thread that
// was kept waiting since the end of an earlier job, waits on.
func TestWokenEarly(t *testing.T) {
	team := NewTeam(2)
	defer team.Close()
	begun, end, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var ended atomic.Bool
	go func() {
		defer close(over)
		team.Do(2, func(_, thread int) {
			if thread == 0 { // the caller's chunk lasts until the worker has the other
				<-begun
				return
			}
			close(begun)
			<-end
			ended.Store(true)
		})
		if !ended.Load() {
			t.Error("the job is over, and a chunk under way")
		}
	}()
	asleep := func() bool {
		for !team.sleep.Load() {
			select {
			case <-over:
				return false
			default:
				time.Sleep(100 * time.Microsecond)
			}
		}
		return true
	}
	if asleep() {
		team.rouse()
		asleep()
	}
	close(end)
	<-over
}

func TestPart(t *testing.T) {
	for _, n := range []int{0, 1, 5, 12, 13} {
		next := 0
		for i := range 4 {
			lo, hi := Part(n, i, 4)
			if lo != next || hi-lo > n/4+1 {
				t.Errorf("part %d of %d is [%d,%d), want it to begin at %d", i, n, lo, hi, next)
			}
			next = hi
		}
		if next != n {
			t.Errorf("the parts of %d end at %d", n, next)
		}
	}
}

// TestRest: a team that was told to rest, at any time between jobs, does the next
// job.
func TestRest(t *testing.T) {
	team := NewTeam(3)
	defer team.Close()
	var done atomic.Int64
	job := func(int, int) { done.Add(1) }
	for i := range 200 {
		team.Do(7, job)
		if i%3 > 0 {
			team.Rest()
		}
		if i%7 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	if done.Load() != 7*200 {
		t.Errorf("%d chunks were done, want %d", done.Load(), 7*200)
	}
}
