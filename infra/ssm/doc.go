// Package ssm reads the secrets of a configuration from AWS, at the start of a
// function, through one service: Parameter Store.
//
//	ssm:/prod/crm/token          ─▶ /prod/crm/token ────────────────────────────┐
//	                                                                            ├─▶ GetParameters, ten at a time
//	secretsmanager:prod/crm:v2   ─▶ /aws/reference/secretsmanager/prod/crm:v2 ──┘
//
// The second path is reserved: Parameter Store passes such a name on to Secrets
// Manager, with the caller's permissions there. A version's id or stage
// may follow the name; without one it is AWSCURRENT. The whole text of the secret is
// the value, also when it is JSON. What cannot be read this way: a secret of
// another account or region, one named by its ARN, and a binary one.
//
// A function's role needs:
//
//	ssm:GetParameters               on every parameter, and on parameter/aws/reference/secretsmanager/* for secrets
//	secretsmanager:GetSecretValue   on every secret
//	kms:Decrypt                     on the key of each, unless it is AWS's own (aws/ssm, aws/secretsmanager)
//
// Values are read once and kept: a secret that has been rotated is taken at the
// next cold start, which is what two secrets beside each other are for.
package ssm
