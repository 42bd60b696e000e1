package launcher

import (
	"context"
	"os"
	"time"

	"ebtrain/launch/cliflag"
)

// requests are signals, those of one kind that come within cliflag.OneRequest as one:
// the second of a hasty sender does not kill.
func requests(ctx context.Context, signals <-chan os.Signal) <-chan os.Signal {
	out := make(chan os.Signal, cap(signals))
	go func() {
		last := map[os.Signal]time.Time{}
		for {
			select {
			case s := <-signals:
				if now := time.Now(); now.Sub(last[s]) >= cliflag.OneRequest {
					last[s] = now
					select {
					case out <- s:
					default: // enough of them wait
					}
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}
