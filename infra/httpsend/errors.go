package httpsend

import (
	"context"
	"errors"
	"net"
	"syscall"

	"sluice/core"
)

// mapError is the one place where what the transport says gets a code. ctx is
// the caller's own, which the send's timeout does not end.
func (s *Sender) mapError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return stopped(err)
	}
	if coded, ok := errors.AsType[*core.Error](err); ok {
		return coded // the guard's
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return core.Wrap(core.Unavailable, err, "no answer within %v", s.timeout)
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return core.Wrap(core.Unavailable, err, "no answer: the host is not known")
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return core.Wrap(core.Unavailable, err, "no answer: the connection was refused")
	}
	return core.Wrap(core.Unavailable, err, "no answer")
}

// stopped says that the caller ended the send.
func stopped(err error) error {
	return core.Wrap(core.Canceled, err, "the send was stopped")
}
