package host

// HostsDigest is what a card has for the hosts.
var HostsDigest = hostsDigest
