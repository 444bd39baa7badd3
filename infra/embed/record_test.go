package embed

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"sluice/core"
)

// fillAll gives every field of a value something, so that a field which is
// added to a record, but not to its encoding, is found.
func fillAll(v reflect.Value, r *rand.Rand) {
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fillAll(field, r)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range v.Len() {
			fillAll(v.Index(i), r)
		}
	case reflect.String:
		v.SetString(string([]byte{byte(r.IntN(256)), 0, 'x', byte(r.IntN(256))}))
	case reflect.Int, reflect.Int64:
		v.SetInt(r.Int64N(1<<40) + 1)
	case reflect.Uint64, reflect.Uint8:
		v.SetUint(uint64(r.Int64N(200) + 1))
	case reflect.Bool:
		v.SetBool(true)
	default:
		panic("fill " + v.Kind().String())
	}
}

func TestCodecKeepsEveryField(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var g core.Group
	fillAll(reflect.ValueOf(&g).Elem(), r)
	g.Void, g.VoidBytes, g.Mark = 0, 0, 0 // found again when the group is looked at, and of no use here
	for i := range g.Claims {
		g.Claims[i].Mark = 0
	}
	in := reader{b: appendGroup(nil, &g)}
	require.Empty(t, cmp.Diff(g, in.group(format)))
	require.True(t, !in.bad && len(in.b) == 0)

	var e core.Event
	fillAll(reflect.ValueOf(&e).Elem(), r)
	e.Unit = "" // of its source alone
	in = reader{b: appendEvent(nil, &e)}
	require.Empty(t, cmp.Diff(e, in.event()))
	require.False(t, in.bad)

	var d core.DeadLetter
	fillAll(reflect.ValueOf(&d).Elem(), r)
	in = reader{b: appendLetter(nil, &d)}
	got := in.letter()
	require.False(t, in.bad)
	d.Receipt, d.Item.Unit = "", "" // of whoever has taken it, and of its source
	require.Empty(t, cmp.Diff(d, got))

	in = reader{b: appendEvent(nil, &core.Event{})}
	require.Empty(t, cmp.Diff(core.Event{}, in.event(), cmpopts.EquateEmpty()))
	require.False(t, in.bad)
}

// TestCodecCut reads every kind of entry from every part of its bytes: that
// never works, and never does harm.
func TestCodecCut(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	var g core.Group
	var d core.DeadLetter
	fillAll(reflect.ValueOf(&g).Elem(), r)
	fillAll(reflect.ValueOf(&d).Elem(), r)
	d.Item.Body = nil // takes what is left, even nothing
	b := appendGroup(nil, &g)
	for i := range b {
		in := reader{b: b[:i]}
		in.group(format)
		require.True(t, in.bad, "%d of %d bytes", i, len(b))
	}
	b = appendLetter(nil, &d)
	for i := range b {
		in := reader{b: b[:i]}
		in.letter()
		require.True(t, in.bad, "%d of %d bytes", i, len(b))
	}
}

func sealed(k kind, meta, payload []byte, commit uint64, at lsn) []byte {
	b := make([]byte, recordSize(len(meta)+len(payload)))
	copy(b[headerLen:], meta)
	copy(b[headerLen+len(meta):], payload)
	seal(b, k, len(b), len(meta), commit, at)
	return b
}

func TestRecord(t *testing.T) {
	t.Parallel()
	at := position(7, 4096)
	b := sealed(kindGroups, []byte("meta"), []byte("payload"), 9, at)
	rec, ok := readRecord(b, at)
	require.True(t, ok)
	require.Equal(t, kindGroups, rec.kind)
	require.Equal(t, uint64(9), rec.commit)
	require.Equal(t, "meta", string(rec.meta))
	require.Equal(t, "payload\x00\x00\x00\x00\x00", string(rec.payload))
	require.Equal(t, int64(4096+headerLen+4), rec.payloadAt())

	for _, elsewhere := range []lsn{position(8, 4096), position(7, 4104), position(6, 4096), position(7, 8192)} {
		_, ok := readRecord(b, elsewhere)
		require.False(t, ok, "at %v", elsewhere)
	}
	for i := range headerLen + 4 {
		for bit := range 8 {
			b[i] ^= 1 << bit
			_, ok := readRecord(b, at)
			require.False(t, ok, "bit %d of byte %d", bit, i)
			b[i] ^= 1 << bit
		}
	}
	for i := range b {
		_, ok := readRecord(b[:i], at)
		require.False(t, ok, "the first %d bytes", i)
	}
}

// TestStaleRecord passes over records of an earlier commit: what a torn commit
// left behind where later ones have not got to.
func TestStaleRecord(t *testing.T) {
	t.Parallel()
	seg := make([]byte, 8192)
	copy(seg[4096:], sealed(kindSkip, nil, nil, 5, position(3, 4096)))
	copy(seg[4200:], sealed(kindSkip, nil, nil, 4, position(3, 4200)))
	copy(seg[4400:], sealed(kindSkip, nil, nil, 6, position(3, 4400)))
	rec, ok := nextRecord(seg, 3, 4096+headerLen, 5)
	require.True(t, ok)
	require.Equal(t, int64(4400), rec.at.off())
	_, ok = nextRecord(seg, 3, 4096, 7)
	require.False(t, ok)
}

func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	var g core.Group
	var d core.DeadLetter
	fillAll(reflect.ValueOf(&g).Elem(), r)
	fillAll(reflect.ValueOf(&d).Elem(), r)
	gr := &group{buf: &buffer{name: "b"}, key: "k"}
	meta := appendPart(nil, gr, &g, 1, 1000)
	meta = appendFiled(meta, &g, 0, &filed{seq: 1, len: 5, crc: 1, at: 2, cum: 3, size: 4})
	f.Add(uint8(kindGroups), meta)
	f.Add(uint8(kindGroups1), append(appendNumbers(nil, 1), meta...))
	f.Add(uint8(kindGroups2), append(appendNumbers(nil, 1), meta...))
	f.Add(uint8(kindLetters), appendLetterEntry(appendNumbers(nil, 1), &letter{number: 1, id: "i", buffer: "b"}))
	f.Add(uint8(kindSettled), appendNumbers(nil, 2, 1, 2))
	f.Add(uint8(0), sealed(kindGroups, meta, []byte("12345"), 1, position(1, dataStart)))
	f.Add(uint8(20), appendEvent(nil, &d.Item.Event))
	f.Add(uint8(21), appendLetter(nil, &d))
	versions := map[kind]uint64{kindGroups1: 1, kindGroups2: 2, kindGroups: format}
	f.Fuzz(func(t *testing.T, what uint8, b []byte) {
		in := reader{b: b}
		switch kind(what) {
		case 0:
			readRecord(b, position(1, dataStart))
			nextRecord(b, 1, 0, 0)
		case 20:
			in.event()
		case 21:
			in.letter()
		default: // a record that verifies, whatever it holds, never does harm
			s := &Store{}
			s.log = newLog(&s.mu, newMemFS(), "data", &Options{})
			s.index = newIndex(&s.log.segs)
			at := position(1, dataStart)
			rec, ok := readRecord(sealed(kind(what), b, b, 1, at), at)
			require.True(t, ok)
			if version, ok := versions[kind(what)]; ok {
				for _, p := range in.parts(version) { // numbers that no log can hold take as long to walk over
					if p.group.Tail > 1<<10 || p.group.Head > 1<<10 || len(p.group.Claims) > 8 || slices.ContainsFunc(p.group.Claims, func(c core.Claim) bool { return c.To > 1<<10 }) {
						return
					}
				}
			}
			w := &reading{recovery: &recovery{s: s, log: s.log, ix: s.index, rep: &s.report}, seg: &segment{gen: 1}}
			_, _ = w.take(&rec)
		}
	})
}
