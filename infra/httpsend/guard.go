package httpsend

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"sluice/core"
)

// guard decides which addresses may be connected to. It looks at the address
// that is about to be dialled, so no DNS answer can change behind its back.
type guard struct {
	allowPrivate bool
	timeout      time.Duration // of one dial; a send may leave it behind
	buffers      sync.Pool     // of its connections
}

// dial connects to a host. It is core.Forbidden only when every address of
// the host was refused: one that was let through but did not answer may the
// next time.
func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var (
		mu      sync.Mutex // two families are dialled side by side
		refusal error
		allowed bool
	)
	d := net.Dialer{Timeout: g.timeout, Control: func(_, address string, _ syscall.RawConn) error {
		err := g.check(address)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			refusal = err
		} else {
			allowed = true
		}
		return err
	}}
	c, err := d.DialContext(ctx, network, address)
	mu.Lock()
	defer mu.Unlock()
	switch {
	case err == nil:
		return &conn{Conn: c, buffers: &g.buffers}, nil
	case refusal != nil && !allowed:
		return nil, refusal
	case refusal != nil: // err may be the refusal of one address
		return nil, core.Errorf(core.Unavailable, "no answer from the host's allowed addresses")
	}
	return nil, err
}

// check refuses an address, as ip:port, or returns nil.
func (g *guard) check(address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return core.Wrap(core.Forbidden, err, "an address that cannot be read is refused")
	}
	class, private := classify(ap.Addr())
	switch {
	case class == "":
		return nil
	case !private:
		return core.Errorf(core.Forbidden, "%s is a %s address, which is always refused", ap.Addr(), class)
	case !g.allowPrivate:
		return core.Errorf(core.Forbidden, "%s is a %s address, which is refused without allowPrivate", ap.Addr(), class)
	}
	return nil
}

// addressClass is a range that is not the public internet.
type addressClass struct {
	prefix  netip.Prefix
	name    string
	private bool // refused only without allowPrivate
}

// classes are the ranges, narrower ones before those that hold them.
//
// Sources: the special-purpose address registries of IANA (RFC 6890), and the
// manuals of the clouds for their metadata addresses.
var classes = []addressClass{
	{netip.MustParsePrefix("169.254.169.254/32"), "metadata", false},
	{netip.MustParsePrefix("100.100.100.200/32"), "metadata", false},
	{netip.MustParsePrefix("168.63.129.16/32"), "metadata", false},
	{netip.MustParsePrefix("192.0.0.192/32"), "metadata", false},
	{netip.MustParsePrefix("fd00:ec2::254/128"), "metadata", false},
	{netip.MustParsePrefix("fd20:ce::254/128"), "metadata", false},
	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified", false},
	{netip.MustParsePrefix("::/128"), "unspecified", false},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local", false},
	{netip.MustParsePrefix("fe80::/10"), "link-local", false},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast", false},
	{netip.MustParsePrefix("ff00::/8"), "multicast", false},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved", false},       // and broadcast
	{netip.MustParsePrefix("64:ff9b:1::/48"), "local NAT64", false}, // where the real one stands in it is not known
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback", true},
	{netip.MustParsePrefix("::1/128"), "loopback", true},
	{netip.MustParsePrefix("10.0.0.0/8"), "private", true},
	{netip.MustParsePrefix("172.16.0.0/12"), "private", true},
	{netip.MustParsePrefix("192.168.0.0/16"), "private", true},
	{netip.MustParsePrefix("100.64.0.0/10"), "carrier-grade NAT", true},
	{netip.MustParsePrefix("192.0.0.0/24"), "private", true},
	{netip.MustParsePrefix("198.18.0.0/15"), "private", true},
	{netip.MustParsePrefix("fc00::/7"), "private", true},
	{netip.MustParsePrefix("fec0::/10"), "private", true},
}

// classify names the range of an address, or of the IPv4 address that it
// stands for; "" for the public internet.
func classify(a netip.Addr) (name string, private bool) {
	a = a.WithZone("").Unmap()
	for i := range classes {
		if classes[i].prefix.Contains(a) {
			return classes[i].name, classes[i].private
		}
	}
	if inner, ok := embedded(a); ok {
		return classify(inner)
	}
	return "", false
}

var (
	compatible = netip.MustParsePrefix("::/96")        // RFC 4291 section 2.5.5.1
	nat64      = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052
	sixToFour  = netip.MustParsePrefix("2002::/16")    // RFC 3056
	teredo     = netip.MustParsePrefix("2001::/32")    // RFC 4380, inverted
)

// embedded is the IPv4 address that a transition address leads to.
func embedded(a netip.Addr) (netip.Addr, bool) {
	b := a.As16()
	switch {
	case compatible.Contains(a), nat64.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:])), true
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	case teredo.Contains(a):
		return netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}), true
	}
	return netip.Addr{}, false
}
