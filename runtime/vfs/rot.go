package vfs

// Rot gives a file other bytes by no operation of anybody, as a disk does by itself: they are there
// after any crash, too. Inode and mtime stay, and no fault is asked. change gets a copy.
func (d *Mem) Rot(name string, change func(data []byte) []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.lookupFile(name, 0)
	if err != nil {
		return err
	}
	data := change(append([]byte(nil), n.data...))
	n.data, n.synced = data[:len(data):len(data)], data[:len(data):len(data)]
	d.changed(d.abs(name))
	return nil
}

// Touch sets the mtime of a file to now, likewise.
func (d *Mem) Touch(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.lookupFile(name, 0)
	if err == nil {
		n.mtime = d.clock()
		d.changed(d.abs(name))
	}
	return err
}
