package host

import "fmt"

// cutHosts cuts hosts, which are those of all ranks, into blocks of consecutive ranks: of as
// many as can be for a power of two, where each begins at a multiple of that and lies on one
// host. The balanced tree over the blocks of the trees over their ranks is the tree over all
// ranks (package reduce), whatever the hosts are.
func cutHosts(hosts []string) []string {
	size := 1
	for size < len(hosts) && inBlocks(hosts, 2*size) {
		size *= 2
	}
	blocks := make([]string, len(hosts))
	for r, host := range hosts {
		blocks[r] = fmt.Sprint(host, " block ", r/size)
	}
	return blocks
}

// inBlocks says whether each block of size ranks, the last of which may be short, lies on one host.
func inBlocks(hosts []string, size int) bool {
	for r, host := range hosts {
		if host != hosts[r/size*size] {
			return false
		}
	}
	return true
}
