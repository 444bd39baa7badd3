package core

// Split takes a batch off the front of a page of pending items: as many as
// MaxItems and CapBytes allow, but one at the least. The page must start at
// the group's first pending number.
func Split(from uint64, page *Page, reason Reason, p *Policy) (Taking, []Item) {
	n, bytes := 0, int64(0)
	for n < len(page.Items) && n < p.MaxItems {
		bytes += page.Items[n].Size()
		if n > 0 && bytes > p.CapBytes {
			break
		}
		n++
	}
	t := Taking{From: from, To: page.End, Through: page.Through, Items: n, NextAt: page.NextAt, Mark: page.Mark, Reason: reason}
	if n < len(page.Items) {
		t.To, t.Through = page.Items[n-1].Seq, page.Offsets[n-1]
		t.NextAt, t.Mark = page.Items[n].ReceivedAt, page.mark(n)
	}
	return t, page.Items[:n]
}
