package core

// WordOf names the record of an event whose outcome is waited for.
var WordOf = wordOf
