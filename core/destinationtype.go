package core

import (
	"slices"
	"strings"

	"sluice/core/objectkey"
)

// destinationType is what a configuration may say of a type of destination. A new
// type is an entry in destinationTypes.
type destinationType struct {
	name  string
	local bool     // it is for one machine: a function keeps no files and has no terminal
	uses  []string // the fields that have a meaning, beside those that all types have

	// check checks that it says where to send; nil: there is nothing to say.
	check func(v *validation, path string, d *Destination)
}

// destinationTypes are all types, the default first.
func destinationTypes() []destinationType {
	return []destinationType{
		{name: TypeHTTP, uses: []string{"url", "headers", "format", "secrets", "allowPrivate"}, check: (*validation).httpURL},
		{name: TypeSQS, uses: []string{"queue", "region", "allowPrivate"}, check: (*validation).queue},
		{name: TypeS3, uses: []string{"bucket", "key", "compression", "region", "endpoint", "format", "allowPrivate"}, check: (*validation).store},
		{name: TypeFile, uses: []string{"path", "format"}, check: (*validation).file, local: true},
		{name: TypeStdout, uses: []string{"format"}, local: true},
	}
}

// own are the fields that a destination sets and not every type has.
func (d *Destination) own() (set []string) {
	for _, f := range [...]struct {
		name string
		set  bool
	}{
		{"url", d.URL != ""}, {"path", d.Path != ""}, {"queue", d.Queue != ""}, {"bucket", d.Bucket != ""},
		{"key", d.Key != "" && d.Key != objectkey.Default}, {"compression", d.Compression != "" && d.Compression != CompressNone},
		{"region", d.Region != ""}, {"endpoint", d.Endpoint != ""}, {"headers", len(d.Headers) > 0},
		{"format", d.Format != FormatNDJSON}, {"secrets", len(d.Secrets) > 0}, {"allowPrivate", d.AllowPrivate},
	} {
		if f.set {
			set = append(set, f.name)
		}
	}
	return set
}

// DestinationTypes lists the kinds of destinations, the default first.
func DestinationTypes() []string {
	return namesOf(func(destinationType) bool { return true })
}

// namesOf lists the types of which something holds.
func namesOf(holds func(destinationType) bool) (names []string) {
	for _, t := range destinationTypes() {
		if holds(t) {
			names = append(names, t.name)
		}
	}
	return names
}

// endpoint checks that a destination says where to send, and nothing that its
// type would ignore.
func (v *validation) endpoint(path string, d *Destination) {
	types := destinationTypes()
	i := slices.IndexFunc(types, func(t destinationType) bool { return t.name == d.Type })
	if i < 0 {
		return // said already; what it needs is not known
	}
	if types[i].check != nil {
		types[i].check(v, path, d)
	}
	for _, field := range d.own() {
		if !slices.Contains(types[i].uses, field) {
			users := namesOf(func(t destinationType) bool { return slices.Contains(t.uses, field) })
			v.add(path+"."+field, "has no meaning here", "remove it, or make the destination one of type "+strings.Join(users, " or "))
		}
	}
}

// unfitOnAWS refuses a destination that is for one machine.
func (v *validation) unfitOnAWS(d *Destination) {
	if slices.Contains(namesOf(func(t destinationType) bool { return t.local }), d.Type) {
		fit := namesOf(func(t destinationType) bool { return !t.local })
		last := len(fit) - 1
		v.add(FieldPath("destinations", d.Name)+".type", "is "+d.Type+", which is for one machine: a function keeps no files",
			"must be "+strings.Join(fit[:last], ", ")+" or "+fit[last]+" on AWS")
	}
}
