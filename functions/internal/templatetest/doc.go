// Package templatetest holds the stack and the code together. template.yaml,
// samconfig.toml and the events are data that nothing compiles, and there is no
// account to try them in; so tests read them as CloudFormation would, and compare
// them with what the code reads, calls and writes.
//
//	template.yaml ── environment, key schema, timeouts, permissions ──▶ functions, infra, core
//	      │ └─────── metrics of alarms and dashboard ─────────────────▶ infra/emf
//	      └─ .ci/template ─▶ testdata/translated.json ── what SAM adds: permissions, values
//	samconfig.toml ── every parameter, within its bounds ─────────────▶ template.yaml
//	events/*.json ─── edge and core ──────────────────────────────────▶ events/*.golden.json
//
// It has no code but its tests.
package templatetest
