//go:build !unix

package disk

// NoFollow is a flag of os.OpenFile: a link is an error, where the system can tell.
const NoFollow = 0
