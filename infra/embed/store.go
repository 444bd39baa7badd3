package embed

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"sync"
	"time"

	"sluice/core"
)

// Options are a store's settings. The zero value is usable, but does not sync.
type Options struct {
	// Sync makes every answer wait for an fdatasync. Without it a crash of the
	// host, unlike one of the process, can lose what was answered for.
	Sync bool
	// SegmentBytes is the size of a file of the log, 16 KiB to 1 GiB; also
	// about the largest request that the store takes. 0: 64 MiB.
	SegmentBytes int64
	// CheckpointBytes is how much log is written between two checkpoints: the
	// most that a start reads, besides the checkpoint. 0: 256 MiB.
	CheckpointBytes int64
	// FS is the file system. nil: the operating system's.
	FS FS
	// OnLoss is told of each loss that is found while the store is open, from
	// the goroutine that has found it. What a start finds is in [Store.Report].
	OnLoss func(Loss)
}

const (
	minSegment        = 16 << 10
	maxSegment        = 1 << 30
	defaultSegment    = 64 << 20
	defaultCheckpoint = 256 << 20
)

func (o *Options) fill() error {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = defaultSegment
	}
	if o.CheckpointBytes == 0 {
		o.CheckpointBytes = defaultCheckpoint
	}
	if o.FS == nil {
		o.FS = osFS{}
	}
	if o.SegmentBytes < minSegment || o.SegmentBytes > maxSegment {
		return core.Errorf(core.Invalid, "a segment of %d bytes; it takes %d to %d", o.SegmentBytes, minSegment, maxSegment)
	}
	return nil
}

// Store is the embedded store. It is safe for concurrent use.
type Store struct {
	opts   Options
	dir    string
	lock   io.Closer
	report Report

	mu      sync.Mutex // guards what follows
	log     *log
	index   *index
	meta    []byte     // scratch: the meta of a record being made
	undo    []undo     // scratch: the groups that an append has changed
	sighted []sighting // scratch: the ids that it has noted
	closed  bool
	lost    uint64

	calls       sync.WaitGroup // calls under way
	checkpoints uint32         // number of the newest one; the keeper's, or Close's

	stop    chan struct{} // ends the keeper, then the preparer
	workers sync.WaitGroup
	quit    chan struct{} // ends the committer, last
	commits sync.WaitGroup
}

var _ core.Store = (*Store)(nil)

// Open opens the store in a folder, which it makes when there is none, and
// recovers what is there: see [Store.Report]. Unavailable: another process has
// the folder, or the disk does not work; Full: no room for a first segment.
func Open(dir string, opts Options) (*Store, error) {
	began := time.Now()
	if err := opts.fill(); err != nil {
		return nil, err
	}
	if err := opts.FS.MkdirAll(dir); err != nil {
		return nil, core.Wrap(core.Unavailable, err, "the data folder %s cannot be made", dir)
	}
	lock, err := opts.FS.Lock(filepath.Join(dir, lockName))
	if locked, ok := errors.AsType[*LockedError](err); ok {
		return nil, core.Errorf(core.Unavailable, "the data folder %s is in use by process %s; one process at a time may have it", dir, locked.Owner)
	}
	if err != nil {
		return nil, core.Wrap(core.Unavailable, err, "the data folder %s cannot be locked", dir)
	}
	s := &Store{opts: opts, dir: dir, lock: lock, stop: make(chan struct{}), quit: make(chan struct{})}
	s.log = newLog(&s.mu, opts.FS, dir, &s.opts)
	s.index = newIndex(&s.log.segs)
	if err := s.restore(); err != nil {
		err = errors.Join(err, s.closeFiles())
		return nil, core.Wrap(openCode(err), err, "the data folder %s cannot be opened", dir)
	}
	s.report.Took = time.Since(began)
	s.commits.Go(func() { s.log.commitLoop(s.quit) })
	s.workers.Go(func() { s.log.prepareLoop(s.stop) })
	s.workers.Go(func() { s.keepLoop(s.stop) })
	return s, nil
}

func openCode(err error) core.Code {
	if noSpace(err) {
		return core.Full
	}
	return core.Unavailable
}

// Failed is why the store has stopped for good, or nil: a write or an fsync
// has failed. Only a new start can tell what the disk holds.
func (s *Store) Failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.failed
}

// Lost is how many items and dead letters were found damaged or missing, at
// the start and since.
func (s *Store) Lost() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// Close waits for the calls under way, writes a checkpoint, so that the next
// start is quick, and lets go of the folder. Later calls are Unavailable.
func (s *Store) Close() error {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.log.changed() // nobody waits for room any more
	s.mu.Unlock()
	if was {
		return nil
	}
	s.calls.Wait()
	close(s.stop)
	s.workers.Wait()
	err := s.checkpoint()
	close(s.quit)
	s.commits.Wait()
	if err := errors.Join(err, s.closeFiles()); err != nil {
		return core.Wrap(core.CodeOf(err), err, "the store in %s has closed badly", s.dir)
	}
	return nil
}

func (s *Store) closeFiles() error {
	var errs []error
	for _, seg := range s.log.segs.byGen {
		if seg.file != nil {
			errs = append(errs, seg.file.Close())
		}
	}
	for _, seg := range s.log.spares {
		errs = append(errs, seg.file.Close())
	}
	return errors.Join(append(errs, s.lock.Close())...)
}

// enter begins a call, with the mutex held; leave ends it.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return core.Wrap(core.Canceled, err, "the caller has gone")
	}
	s.mu.Lock()
	if s.closed || s.log.failed != nil {
		defer s.mu.Unlock()
		if s.log.failed != nil {
			return s.log.failed
		}
		return core.Errorf(core.Unavailable, "the store is closed")
	}
	s.calls.Add(1)
	return nil
}

func (s *Store) leave() { s.calls.Done() }

// change applies a change to memory and the log, and returns the commit that
// makes it durable. It waits for room, and runs the change again, when that
// returns errWait.
func (s *Store) change(ctx context.Context, apply func() error) (*commit, error) {
	for {
		if err := s.enter(ctx); err != nil {
			return nil, err
		}
		c, room, err := s.applied(apply)
		if !errors.Is(err, errWait) {
			return c, err
		}
		select {
		case <-room:
		case <-ctx.Done():
		}
	}
}

// applied runs a change, and lets go of the mutex however it ends.
func (s *Store) applied(apply func() error) (c *commit, room chan struct{}, err error) {
	defer s.leave()
	defer s.mu.Unlock()
	err = apply()
	return s.log.fill, s.log.room, err
}

// Group returns a group's record.
func (s *Store) Group(ctx context.Context, ref core.Ref) (core.Group, error) {
	if err := s.enter(ctx); err != nil {
		return core.Group{}, err
	}
	defer s.leave()
	defer s.mu.Unlock()
	g := s.index.record(ref)
	return g.Clone(), nil
}

// Update applies a transition to a group. It answers once that is durable; a
// change of nothing but hints is not waited for.
func (s *Store) Update(ctx context.Context, ref core.Ref, _ *core.Group, fn func(*core.Group) error) (core.Group, error) {
	var next core.Group
	var wait bool
	c, err := s.change(ctx, func() error {
		was := s.index.record(ref)
		next = was.Clone()
		if err := fn(&next); err != nil {
			return err
		}
		var changed bool
		if changed, wait = differ(&was, &next); !changed {
			return nil
		}
		if next.Life != was.Life || next.Tail != was.Tail || next.TailBytes != was.TailBytes || was.Empty() && !next.Empty() {
			return core.Errorf(core.Internal, "a transition of group %q of %q made up items", ref.Key, ref.Buffer)
		}
		return s.record(ref, next.Clone()) // fn may have kept its copy
	})
	if err != nil {
		return core.Group{}, err
	}
	if wait {
		if err := c.wait(); err != nil {
			return core.Group{}, err
		}
	}
	return next, nil
}

// record logs a group's new record and applies it.
func (s *Store) record(ref core.Ref, next core.Group) error {
	gr, fresh := s.index.obtain(ref)
	s.meta = appendPart(s.meta[:0], gr, &next, 0, 0)
	if err := s.log.makeRoom(recordSize(len(s.meta)), leaveForUpdate); err != nil {
		if fresh {
			s.index.forget(gr, 0)
		}
		return err
	}
	s.log.add(kindGroups, s.meta, nil)
	s.index.replace(gr, next, s.log.end())
	return nil
}

// differ reports whether a transition has changed anything, and whether that
// is more than hints, of which a lost one costs nothing.
func differ(a, b *core.Group) (changed, more bool) {
	same := len(a.Claims) == len(b.Claims) && a.Life == b.Life &&
		a.Head == b.Head && a.Tail == b.Tail && a.HeadBytes == b.HeadBytes && a.TailBytes == b.TailBytes &&
		a.Ceiling == b.Ceiling && a.Closed == b.Closed
	for i := 0; same && i < len(a.Claims); i++ {
		same = sameClaim(&a.Claims[i], &b.Claims[i])
	}
	hints := a.Rev != b.Rev || a.CheckAt != b.CheckAt || a.FirstAt != b.FirstAt || a.LastAt != b.LastAt || a.Hold != b.Hold
	return !same || hints, !same
}

func sameClaim(a, b *core.Claim) bool {
	return a.ID == b.ID && a.From == b.From && a.To == b.To && string(a.Done) == string(b.Done) &&
		a.Residue == b.Residue && a.Reason == b.Reason && a.Attempt == b.Attempt && a.Lease == b.Lease &&
		a.Due == b.Due && a.FirstErrorAt == b.FirstErrorAt && a.Error == b.Error &&
		a.Fold == b.Fold && a.Sent == b.Sent && a.Hop == b.Hop && a.Token == b.Token
}
