package ssm

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/aws/smithy-go"

	"sluice/core"
)

// called is what a reference calls the parameter, and whether it is a secret
// of Secrets Manager.
func called(name string) (what string, secret bool) {
	if id, ok := strings.CutPrefix(name, referencePath); ok {
		return "names the secret " + id, true
	}
	return "names the parameter " + name, false
}

func missing(name string) core.Fault {
	what, secret := called(name)
	if secret {
		return core.Fault{
			Problem: what + ", which Secrets Manager does not have",
			Right:   "create it in the account and region of the function",
		}
	}
	return core.Fault{
		Problem: what + ", which Parameter Store does not have",
		Right:   "create it in the account and region of the function, as a SecureString",
	}
}

func empty(name string) core.Fault {
	what, _ := called(name)
	return core.Fault{Problem: what + ", which holds no text", Right: "store the secret as text, not as binary"}
}

// missingAction finds the permission that is missing, which AWS tells in
// words only.
var missingAction = regexp.MustCompile(`not authorized to perform: ([a-z0-9-]+:[A-Za-z]+)`)

func denied(name, message string) core.Fault {
	what, secret := called(name)
	f := core.Fault{Problem: what + ", which the function may not read"}
	switch action := missingAction.FindStringSubmatch(message); {
	case action != nil && strings.HasPrefix(action[1], "kms:"):
		f.Right = "its role needs " + action[1] + " on its key"
	case action != nil:
		f.Right = "its role needs " + action[1] + " on it"
	case secret:
		f.Right = "its role needs secretsmanager:GetSecretValue and ssm:GetParameters on it, and kms:Decrypt if the key is not aws/secretsmanager"
	default:
		f.Right = "its role needs ssm:GetParameters on it, and kms:Decrypt if the key is not aws/ssm"
	}
	return f
}

func refused(name string) core.Fault {
	what, secret := called(name)
	f := core.Fault{Problem: what + ", a name that Parameter Store refuses"}
	if secret {
		f.Right = "must be of letters, digits and /_.-, with a colon and the version behind it if need be"
	} else {
		f.Right = "must be of letters, digits and _.-, with / before and between levels, and not begin with aws or ssm"
	}
	return f
}

func keyless(name string) core.Fault {
	what, _ := called(name)
	return core.Fault{Problem: what + ", whose key is gone or disabled", Right: "enable the key, or store the secret again with another"}
}

// faultOf is what an answer of the service says of a name. single is false for
// an error that is not about what was asked for, such as throttling.
func faultOf(name string, err error) (fault core.Fault, single bool) {
	answer, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return core.Fault{}, false
	}
	switch answer.ErrorCode() {
	case "AccessDeniedException":
		return denied(name, answer.ErrorMessage()), true
	case "ParameterNotFound", "ParameterVersionNotFound", "ResourceNotFoundException":
		return missing(name), true
	case "ValidationException":
		return refused(name), true
	case "InvalidKeyId":
		return keyless(name), true
	}
	return core.Fault{}, false
}

// unavailable maps an error that is not about what was asked for.
func unavailable(err error) error {
	code := core.Unavailable
	if errors.Is(err, context.Canceled) {
		code = core.Canceled
	}
	return core.Wrap(code, err, "secrets cannot be read from Parameter Store")
}
