package launcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/member"
	"ebtrain/launch/supervise"
)

// openTransport joins, or as node 0 opens, the group of launchers, and completes
// cfg with the key and the address of this node in it.
func openTransport(ctx context.Context, cfg *supervise.Config, o Options, environ []string) error {
	var err error
	switch {
	case !o.Step.Store:
		if err := o.unmet(cfg.Node.Key); err != nil {
			return err
		}
		err = openMember(ctx, cfg, o)
	case o.NodeRank == 0:
		err = openAndPublish(ctx, cfg, o, environ)
	default:
		err = learnAndOpen(ctx, cfg, o, environ)
	}
	if err != nil || o.Step.Source != "" || o.NodeRank != 0 {
		return err
	}
	more, on := span(o.Least-1, " to ", o.Nodes-1)+" more nodes", "on each of them"
	if o.Nodes == 2 {
		more, on = "another node", "on it"
	}
	_, err = fmt.Fprintf(cfg.Stderr, "%s: waiting for %s; %s: ddplaunch --nnodes %s --join %s ...\n",
		o.Name, more, on, span(o.Least, ":", o.Nodes), net.JoinHostPort(cfg.Node.Info.Addr, strconv.Itoa(cfg.Transport.(*member.Member).Port())))
	return abandon(*cfg, err)
}

// openMember opens this launcher's port and, but on node 0, connects it to node 0.
func openMember(ctx context.Context, cfg *supervise.Config, o Options) error {
	m, err := member.Open(ctx, member.Config{
		Name: cfg.Node.Info.Name, Coordinator: o.NodeRank == 0, Endpoint: o.Endpoint, Ports: o.Ports,
		Key: cfg.Node.Key, Label: "ebtrain/" + o.RunID, Nodes: o.Nodes, Wait: o.JoinWait, Log: cfg.Log,
	})
	if err != nil {
		return err
	}
	cfg.Transport = m
	cfg.Node.Info.Addr = m.Addr()
	return nil
}

// openAndPublish is what node 0 of a step with a store does: others get its address
// and, unless they have it, a key that is made up here. If it fails they learn why.
func openAndPublish(ctx context.Context, cfg *supervise.Config, o Options, environ []string) error {
	s, err := openStore(ctx, o, environ, cfg.Log)
	if err != nil {
		return err
	}
	var mine card
	if cfg.Node.Key == nil {
		mine.key = randomKey()
		cfg.Node.Key = mine.key
	}
	if o.Endpoint, err = freely(ctx, o.Endpoint); err == nil {
		err = openMember(ctx, cfg, o)
	}
	if err != nil {
		return errors.Join(err, s.publish(card{failure: err.Error()}))
	}
	mine.endpoint = net.JoinHostPort(cfg.Node.Info.Addr, strconv.Itoa(cfg.Transport.(*member.Member).Port()))
	return abandon(*cfg, s.publish(mine))
}

// freely is where node 0 listens if it can tell the others: on any port, and at
// this machine's usual address if the host's name is none of an address of it,
// unless the user gave one.
func freely(ctx context.Context, endpoint string) (string, error) {
	host, told, err := member.Host(endpoint)
	if err != nil || told {
		return endpoint, err
	}
	if !member.IsOwn(ctx, host) {
		host = ""
	}
	return net.JoinHostPort(host, "0"), nil
}

// learnAndOpen is what the other launchers of such a step do.
func learnAndOpen(ctx context.Context, cfg *supervise.Config, o Options, environ []string) error {
	s, err := openStore(ctx, o, environ, cfg.Log)
	if err != nil {
		return err
	}
	theirs, err := s.learn()
	if err != nil {
		return err
	}
	if theirs.key != nil {
		cfg.Node.Key = theirs.key
	}
	if cfg.Node.Key == nil {
		return errors.New("node 0 has a secret and this node has none: set EBTRAIN_KEY, or --key-file, on all nodes or on none")
	}
	o.Endpoint = theirs.endpoint
	cfg.Node.Join = o.Endpoint
	return openMember(ctx, cfg, o)
}

// dataAddr finds the address on which this node's ranks listen, and a free port on
// it for other programs.
func dataAddr(cfg *supervise.Config, o Options) error {
	own, err := o.networkAddr()
	if err != nil {
		return err
	}
	cfg.Node.Info.Addr = cmp.Or(own, cfg.Node.Info.Addr)
	cfg.Node.Info.Port, err = freePort(cfg.Node.Info.Addr, o.Ports)
	return err
}

// networkAddr is this node's address on the network for the ranks' data, "" if none was named.
func (o Options) networkAddr() (string, error) {
	if o.Network == "" {
		return "", nil
	}
	a, err := member.NetworkAddr(o.Network)
	if err != nil {
		return "", cliflag.Usage("--network %w", err)
	}
	return a.String(), nil
}

// abandon is err, after which nobody uses cfg's transport.
func abandon(cfg supervise.Config, err error) error {
	if err == nil || cfg.Transport == nil {
		return err
	}
	return errors.Join(err, cfg.Transport.Close())
}

// span is a number of nodes in words, from a least to a largest.
func span(least int, to string, most int) string {
	if least == most {
		return strconv.Itoa(most)
	}
	return fmt.Sprint(least, to, most)
}
