package httpsend

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

func TestGuard(t *testing.T) {
	t.Parallel()
	const open, private, never = "open", "private", "never"
	tests := []struct{ address, want, class string }{
		{"93.184.216.34", open, ""},
		{"2606:2800:220:1::1", open, ""},
		{"172.15.255.255", open, ""},
		{"172.32.0.0", open, ""},
		{"100.63.255.255", open, ""},
		{"100.128.0.0", open, ""},
		{"::ffff:93.184.216.34", open, ""},
		{"64:ff9b::5db8:d822", open, ""},
		{"2002:5db8:d822::1", open, ""},

		{"127.0.0.1", private, "loopback"},
		{"127.255.255.254", private, "loopback"},
		{"::1", private, "loopback"},
		{"::ffff:127.0.0.1", private, "loopback"},
		{"::127.0.0.1", private, "loopback"},
		{"64:ff9b::7f00:1", private, "loopback"},
		{"2002:7f00:1::", private, "loopback"},
		{"2001:0:4136:e378:8000:63bf:80ff:fffe", private, "loopback"}, // Teredo of 127.0.0.1
		{"10.0.0.1", private, "private"},
		{"172.16.0.1", private, "private"},
		{"172.31.255.255", private, "private"},
		{"192.168.1.1", private, "private"},
		{"::ffff:10.0.0.1", private, "private"},
		{"64:ff9b::a00:1", private, "private"},
		{"2002:c0a8:101::1", private, "private"},
		{"198.18.0.1", private, "private"},
		{"fd12:3456::1", private, "private"},
		{"fc00::1", private, "private"},
		{"fec0::1", private, "private"},
		{"100.64.0.1", private, "carrier-grade NAT"},

		{"169.254.169.254", never, "metadata"},
		{"169.254.170.2", never, "link-local"},
		{"fd00:ec2::254", never, "metadata"},
		{"100.100.100.200", never, "metadata"},
		{"168.63.129.16", never, "metadata"},
		{"::ffff:169.254.169.254", never, "metadata"},
		{"::169.254.169.254", never, "metadata"},
		{"64:ff9b::a9fe:a9fe", never, "metadata"},
		{"2002:a9fe:a9fe::", never, "metadata"},
		{"64:ff9b:1::a9fe:a9fe", never, "local NAT64"},
		{"169.254.0.1", never, "link-local"},
		{"fe80::1", never, "link-local"},
		{"fe80::1%eth0", never, "link-local"},
		{"224.0.0.1", never, "multicast"},
		{"239.255.255.255", never, "multicast"},
		{"ff02::1", never, "multicast"},
		{"0.0.0.0", never, "unspecified"},
		{"0.1.2.3", never, "unspecified"},
		{"::", never, "unspecified"},
		{"::ffff:0.0.0.0", never, "unspecified"},
		{"255.255.255.255", never, "reserved"},
	}
	for _, tt := range tests {
		t.Run(tt.address, func(t *testing.T) {
			t.Parallel()
			address := netip.AddrPortFrom(netip.MustParseAddr(tt.address), 80).String()
			for _, allow := range []bool{false, true} {
				err := (&guard{allowPrivate: allow}).check(address)
				if tt.want == open || tt.want == private && allow {
					require.NoError(t, err)
					continue
				}
				require.Equal(t, core.Forbidden, core.CodeOf(err))
				require.ErrorContains(t, err, tt.class+" address")
				require.Equal(t, tt.want == private, strings.Contains(err.Error(), "allowPrivate"))
				require.LessOrEqual(t, len(err.Error()), core.MaxClaimError, "a claim keeps it whole")
			}
		})
	}
}

// TestGuardAtConnect sends to a server that is there, by name and by address.
func TestGuardAtConnect(t *testing.T) {
	t.Parallel()
	server := answering(t, 200, "")
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"} {
		o := options("http://" + net.JoinHostPort(strings.Trim(host, "[]"), port) + "/in?token=hunter2")
		r := newSender(t, o).Send(t.Context(), batchOf(1))
		require.Equal(t, "delivered", outcome(&r), "%s: %v", host, r.Err)

		o.AllowPrivate = false
		r = newSender(t, o).Send(t.Context(), batchOf(1))
		require.Equal(t, "permanent", outcome(&r), host)
		require.Equal(t, core.Forbidden, core.CodeOf(r.Err))
		require.ErrorContains(t, r.Err, "loopback")
		require.NotContains(t, r.Err.Error(), "hunter2")
	}
}

func TestGuardRefusesMetadataWhateverIsAllowed(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"169.254.169.254", "[fd00:ec2::254]", "[::ffff:a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]", "0.0.0.0"} {
		r := newSender(t, options("http://"+host+"/latest/meta-data/")).Send(t.Context(), batchOf(1))
		require.Equal(t, "permanent", outcome(&r), "%s: %v", host, r.Err)
		require.Equal(t, core.Forbidden, core.CodeOf(r.Err))
	}
}
