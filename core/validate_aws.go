package core

import (
	"cmp"
	"net/url"
	"regexp"
	"strings"

	"sluice/core/objectkey"
)

var (
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	regionName = regexp.MustCompile(`^[a-z0-9-]{1,63}$`) // stores that are compatible have names of their own
)

// queue checks a destination of type sqs.
func (v *validation) queue(path string, d *Destination) {
	switch {
	case d.Queue == "":
		v.add(path+".queue", "is missing", "an sqs destination needs the URL of its queue, or a reference to it such as env:QUEUE_URL")
	case !IsReference(d.Queue):
		if problem := QueueProblem(d.Queue, d.AllowPrivate); problem != "" {
			v.add(path+".queue", problem, "must be the URL of a queue, such as https://sqs.eu-west-1.amazonaws.com/123456789012/orders, or a reference to it such as env:QUEUE_URL")
		}
	}
	v.region(path, d)
}

// QueueProblem says what is wrong with a queue's URL, or "".
func QueueProblem(s string, allowPrivate bool) string {
	if problem := awsProblem(s, allowPrivate); problem != "" {
		return problem
	}
	if u, err := url.Parse(s); err != nil || strings.Trim(u.Path, "/") == "" {
		return "names no queue"
	}
	return ""
}

// store checks a destination of type s3.
func (v *validation) store(path string, d *Destination) {
	switch {
	case d.Bucket == "":
		v.add(path+".bucket", "is missing", "an s3 destination needs the name of its bucket, or a reference to it such as env:BUCKET")
	case !IsReference(d.Bucket) && !ValidBucket(d.Bucket):
		v.add(path+".bucket", "is not the name of a bucket", "must be 3 to 63 lower case letters, digits, dots and hyphens, or a reference to such a name")
	}
	if _, err := objectkey.Compile(cmp.Or(d.Key, objectkey.Default)); err != nil {
		v.add(path+".key", "is not a template of keys: "+err.Error(), "must be such as "+objectkey.Default)
	}
	v.oneOf(path+".compression", cmp.Or(d.Compression, CompressNone), Compressions())
	if d.Endpoint != "" {
		if problem := awsProblem(d.Endpoint, d.AllowPrivate); problem != "" {
			v.add(path+".endpoint", problem, "must be a URL such as https://s3.example.com")
		} else if u, err := url.Parse(d.Endpoint); err == nil && strings.Trim(u.Path, "/") != "" {
			v.add(path+".endpoint", "has a path", "must be a URL such as https://s3.example.com")
		}
	}
	v.region(path, d)
}

// ValidBucket reports whether a bucket may have that name.
func ValidBucket(s string) bool { return bucketName.MatchString(s) && !strings.Contains(s, "..") }

// awsProblem says what is wrong with the address of a service, or "". Batches
// go over the network in the clear only when that was asked for.
func awsProblem(s string, allowPrivate bool) string {
	if problem := urlProblem(s); problem != "" {
		return problem
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "is not a URL"
	case u.RawQuery != "" || u.Fragment != "":
		return "has a query or a fragment"
	case u.Scheme != "https" && !allowPrivate:
		return "is an http URL, which is refused without allowPrivate"
	}
	return ""
}

func (v *validation) region(path string, d *Destination) {
	if d.Region != "" && !regionName.MatchString(d.Region) {
		v.add(path+".region", "is not the name of a region", "must be such as eu-west-1")
	}
}
