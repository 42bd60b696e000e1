package host

import "time"

// HostsDigest is what a card has for the hosts.
var HostsDigest = hostsDigest

// AlignedHosts is the hosts of a group with Config.Aligned.
var AlignedHosts = cutHosts

// Threaded is cfg for leaders that read with threads, as where there are processors for them.
func Threaded(cfg Config) Config {
	cfg.threads = true
	return cfg
}

// InGrid is cfg for leaders that stand in rows of so many, as many hosts do.
func InGrid(cfg Config, width int) Config {
	cfg.width = width
	return cfg
}

// Impatient is cfg for leaders that wait so long for what they say to be acknowledged.
func Impatient(cfg Config, d time.Duration) Config {
	cfg.unacknowledged = d
	return cfg
}
