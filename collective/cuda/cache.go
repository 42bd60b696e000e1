package cuda

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
)

// CacheVariable names the folder of compiled kernels in the environment. Without
// it they are in ebtrain/kernels of the user's cache folder.
const CacheVariable = "EBTRAIN_CUDA_CACHE"

// cache keeps images in files, one each, named by the hash of all that an image
// depends on. A cache that does not work is told of once, and done without.
type cache struct {
	folder func() (string, error)
	once   sync.Once // for the notice
}

func cacheFolder() (string, error) {
	if asked := os.Getenv(CacheVariable); asked != "" {
		return asked, nil
	}
	folder, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, "ebtrain", "kernels"), nil
}

// cacheKey is the hash of what an image depends on.
func cacheKey(compiler, driver, source string, options []string) string {
	h := sha256.New()
	h.Write(fmt.Appendf(nil, "%q %q %q %q", compiler, driver, options, source))
	return hex.EncodeToString(h.Sum(nil))
}

// fileIdentity stands for a library's file, which may change without its
// version.
func fileIdentity(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return path
	}
	return fmt.Sprintf("%d bytes of %s", info.Size(), info.ModTime().UTC())
}

// magic begins an entry; the digest of the image and the image follow.
const magic = "ebtrain kernel 1\n"

// get returns an image, or nil.
func (c *cache) get(key string, log *slog.Logger) []byte {
	folder, err := c.folder()
	if err != nil {
		return nil // put tells
	}
	path := filepath.Join(folder, key)
	entry, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	image, ok := unpack(entry)
	if !ok {
		log.Warn("a compiled kernel in the cache is damaged: it is compiled again", "file", path)
		return nil
	}
	return image
}

func pack(image []byte) []byte {
	digest := sha256.Sum256(image)
	return append(append([]byte(magic), digest[:]...), image...)
}

// unpack returns the image in memory of its own, which begins at a multiple of 8 as its
// tables of eight-byte words want it.
func unpack(entry []byte) ([]byte, bool) {
	rest, ok := bytes.CutPrefix(entry, []byte(magic))
	if !ok || len(rest) <= sha256.Size {
		return nil, false
	}
	digest, image := rest[:sha256.Size], rest[sha256.Size:]
	if sha256.Sum256(image) != [sha256.Size]byte(digest) {
		return nil, false
	}
	return bytes.Clone(image), true
}

// put keeps an image. An entry is there whole or not at all.
func (c *cache) put(key string, image []byte, log *slog.Logger) {
	if err := c.write(key, pack(image)); err != nil {
		c.once.Do(func() {
			log.Warn("compiled kernels cannot be kept: each start compiles them again", "variable", CacheVariable, "error", err)
		})
	}
}

func (c *cache) write(key string, entry []byte) error {
	folder, err := c.folder()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	// Not by os.CreateTemp, whose files are their owner's alone: the umask says who else of
	// the folder's users may read it.
	f, err := os.OpenFile(filepath.Join(folder, fmt.Sprintf("new-%d-%d", os.Getpid(), rand.Uint64())), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(entry)
	err = cmp.Or(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(folder, key))
	}
	if err != nil {
		_ = os.Remove(f.Name()) // as much as can be done
	}
	return err
}
