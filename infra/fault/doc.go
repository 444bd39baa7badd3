// Package fault puts faults into sends, to see how the other side, and this one,
// take them.
//
//	Send ─▶ delay ─▶ fail: 503, and no call ─▶ the real sender ─▶ drop: the answer is lost
package fault
