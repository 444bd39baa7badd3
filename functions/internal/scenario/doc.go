// Package scenario is the one list of end-to-end scenarios. Sluice passes all
// of them however it runs:
//
//	functions/local ───────────────┐                         ┌─▶ bin/sluice, one process
//	                               ├─▶ scenario.Run ─▶ System┤
//	functions/internal/awse2e ─────┘        │                └─▶ five bootstraps, stand-ins for AWS
//	                                        ▼
//	                                       Sink, the destination
//
// A scenario sees a [System] from outside: it posts events, makes control
// calls, and looks at what its destination gets. What differs between the
// systems, such as how a part of one dies, is a method of System and never a
// reason to leave a scenario out.
//
// Deadlines are held to lower bounds, as nothing may leave early; how late it
// came is logged, because a loaded machine says nothing about the code. The one
// upper bound is far below the minutes that a fault would cost.
package scenario
