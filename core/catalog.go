package core

// Catalog is a valid configuration made ready to work with. It does not change.
type Catalog struct {
	config  *Config
	compile Language
	routes  map[string]*Route
	buffers map[string]*Subscription // by name; those that hold events, too
	hops    map[string]*hop
}

// Route is where a source's events go.
type Route struct {
	Source        *Source
	Subscriptions []*Subscription // in the configuration's order
}

// NewCatalog compiles a configuration. An invalid one is refused with the
// first of its faults; see [Config.Validate] for all of them. compile compiles
// the programs of filters and transforms; nil: there may be none.
func NewCatalog(c *Config, compile Language) (*Catalog, error) {
	if faults := c.Validate(); len(faults) > 0 {
		return nil, Errorf(Invalid, "configuration: %s", faults[0])
	}
	k := &Catalog{
		config:  c,
		compile: compile,
		routes:  make(map[string]*Route),
		buffers: make(map[string]*Subscription),
		hops:    make(map[string]*hop),
	}
	for i := range c.Destinations {
		if err := k.reach(&c.Destinations[i]); err != nil {
			return nil, err
		}
	}
	for i := range c.Sources {
		k.routes[c.Sources[i].Name] = &Route{Source: &c.Sources[i]}
	}
	for i := range c.Buffers {
		if err := k.subscribe(&c.Buffers[i]); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// hop is a destination with what it does to items on their way to it.
type hop struct {
	*Destination
	programs
}

func (k *Catalog) reach(d *Destination) error {
	p, err := k.programs(FieldPath("destinations", d.Name), d.Filter, d.Transform)
	k.hops[d.Name] = &hop{Destination: d, programs: p}
	return err
}

// Config is the configuration that the catalog was made of.
func (k *Catalog) Config() *Config { return k.config }

// Route is a source's route, or nil.
func (k *Catalog) Route(source string) *Route { return k.routes[source] }

// Buffer is a buffer's subscription, or nil.
func (k *Catalog) Buffer(name string) *Subscription { return k.buffers[name] }

// Destination is a destination, or nil.
func (k *Catalog) Destination(name string) *Destination {
	if h := k.hops[name]; h != nil {
		return h.Destination
	}
	return nil
}
