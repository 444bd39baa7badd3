package embed

import (
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// memFS is a file system in memory that crashes as a disk may: of what was not
// synced, each sector may be there or not, and of the folder's changes any
// first part.
type memFS struct {
	mu     sync.Mutex
	names  map[string]*memFile
	synced map[string]*memFile         // as the last SyncDir left them
	since  []func(map[string]*memFile) // changes of names since
	room   int64                       // bytes for all files; 0: no limit
	fail   func(op, name string) error // consulted before every call
	locked map[string]bool
}

// sector is what a disk writes as a whole.
const sector = 512

type memFile struct {
	data   []byte
	synced []byte
	dirty  []dirty
}

// dirty is a write since the last sync.
type dirty struct {
	off  int64
	data []byte
}

func newMemFS() *memFS {
	return &memFS{names: map[string]*memFile{}, synced: map[string]*memFile{}, locked: map[string]bool{}}
}

// crash is the file system after a crash of its host. Both may go on.
func (m *memFS) crash(r *rand.Rand) *memFS {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := maps.Clone(m.synced)
	for _, change := range m.since[:r.IntN(len(m.since)+1)] {
		change(names)
	}
	after := newMemFS()
	after.room = m.room
	for name, f := range names {
		data := f.torn(r)
		after.names[name] = &memFile{data: data, synced: slices.Clone(data)}
	}
	after.synced = maps.Clone(after.names)
	return after
}

// torn is what a crash leaves of a file.
func (f *memFile) torn(r *rand.Rand) []byte {
	data := slices.Clone(f.synced)
	chance := r.IntN(3) // nothing, some, all of it
	for _, d := range f.dirty {
		for from := int64(0); from < int64(len(d.data)); {
			to := min(from+sector-(d.off+from)%sector, int64(len(d.data)))
			if chance == 2 || (chance == 1 && r.IntN(2) == 0) {
				data = put(data, d.data[from:to], d.off+from)
			}
			from = to
		}
	}
	return data
}

// put writes b into data at an offset, growing it as needed.
func put(data, b []byte, off int64) []byte {
	if n := int(off) + len(b); n > len(data) {
		data = append(data, make([]byte, n-len(data))...)
	}
	copy(data[off:], b)
	return data
}

// begin takes the mutex, and consults fail.
func (m *memFS) begin(op, name string) error {
	m.mu.Lock()
	if m.fail != nil {
		return m.fail(op, filepath.Base(name))
	}
	return nil
}

func (m *memFS) MkdirAll(string) error { return nil }

func (m *memFS) List(dir string) ([]string, error) {
	defer m.mu.Unlock()
	if err := m.begin("list", dir); err != nil {
		return nil, err
	}
	var names []string
	for name := range m.names {
		if filepath.Dir(name) == filepath.Clean(dir) {
			names = append(names, filepath.Base(name))
		}
	}
	slices.Sort(names)
	return names, nil
}

func (m *memFS) change(c func(map[string]*memFile)) {
	c(m.names)
	m.since = append(m.since, c)
}

func (m *memFS) Create(name string) (File, error) {
	defer m.mu.Unlock()
	if err := m.begin("create", name); err != nil {
		return nil, err
	}
	f := &memFile{}
	m.change(func(names map[string]*memFile) { names[name] = f })
	return &memHandle{m, name, f}, nil
}

func (m *memFS) Open(name string) (File, error) {
	defer m.mu.Unlock()
	if err := m.begin("open", name); err != nil {
		return nil, err
	}
	f := m.names[name]
	if f == nil {
		return nil, fs.ErrNotExist
	}
	return &memHandle{m, name, f}, nil
}

func (m *memFS) Rename(from, to string) error {
	defer m.mu.Unlock()
	if err := m.begin("rename", from); err != nil {
		return err
	}
	m.change(func(names map[string]*memFile) {
		if f := names[from]; f != nil {
			delete(names, from)
			names[to] = f
		}
	})
	return nil
}

func (m *memFS) Remove(name string) error {
	defer m.mu.Unlock()
	if err := m.begin("remove", name); err != nil {
		return err
	}
	m.change(func(names map[string]*memFile) { delete(names, name) })
	return nil
}

func (m *memFS) SyncDir(dir string) error {
	defer m.mu.Unlock()
	if err := m.begin("syncdir", dir); err != nil {
		return err
	}
	m.synced, m.since = maps.Clone(m.names), nil
	return nil
}

func (m *memFS) Lock(name string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locked[name] {
		return nil, &LockedError{Owner: "42"}
	}
	m.locked[name] = true
	return memLock{m, name}, nil
}

type memLock struct {
	m    *memFS
	name string
}

func (l memLock) Close() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	delete(l.m.locked, l.name)
	return nil
}

// free is how many bytes the disk has left.
func (m *memFS) free() int64 {
	if m.room == 0 {
		return 1 << 40
	}
	free := m.room
	for _, f := range m.names {
		free -= int64(len(f.data))
	}
	return free
}

func (m *memFS) setRoom(room int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.room = room
}

func (m *memFS) used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var n int64
	for _, f := range m.names {
		n += int64(len(f.data))
	}
	return n
}

func (m *memFS) setFail(fail func(op, name string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = fail
}

// edit changes the bytes of a file, as rot does.
func (m *memFS) edit(name string, change func([]byte) []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.names[name]
	f.data = change(f.data)
	f.synced, f.dirty = slices.Clone(f.data), nil
}

type memHandle struct {
	m    *memFS
	name string
	f    *memFile
}

func (h *memHandle) ReadAt(b []byte, off int64) (int, error) {
	defer h.m.mu.Unlock()
	if err := h.m.begin("read", h.name); err != nil {
		return 0, err
	}
	if off >= int64(len(h.f.data)) {
		return 0, io.EOF
	}
	n := copy(b, h.f.data[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (h *memHandle) WriteAt(b []byte, off int64) (int, error) {
	defer h.m.mu.Unlock()
	if err := h.m.begin("write", h.name); err != nil {
		return 0, err
	}
	if grows := off + int64(len(b)) - int64(len(h.f.data)); grows > 0 && grows > h.m.free() {
		return 0, syscall.ENOSPC
	}
	h.f.data = put(h.f.data, b, off)
	h.f.dirty = append(h.f.dirty, dirty{off, slices.Clone(b)})
	return len(b), nil
}

func (h *memHandle) Allocate(size int64) error {
	defer h.m.mu.Unlock()
	if err := h.m.begin("allocate", h.name); err != nil {
		return err
	}
	if grows := size - int64(len(h.f.data)); grows > 0 && grows > h.m.free() {
		return syscall.ENOSPC
	}
	h.f.data = put(h.f.data, nil, size)
	h.f.synced = put(h.f.synced, nil, size)
	return nil
}

func (h *memHandle) Sync() error {
	defer h.m.mu.Unlock()
	if err := h.m.begin("sync", h.name); err != nil {
		return err
	}
	for _, d := range h.f.dirty {
		h.f.synced = put(h.f.synced, d.data, d.off)
	}
	h.f.dirty = nil
	return nil
}

func (h *memHandle) Size() (int64, error) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	return int64(len(h.f.data)), nil
}

func (h *memHandle) Close() error { return nil }
