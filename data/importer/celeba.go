package importer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
)

// celebaSplits are the official splits by number.
var celebaSplits = [3]string{"train", "val", "test"}

// The official partition by picture number: the last of train and of val.
const (
	celebaTrain = 162770
	celebaVal   = 182637
)

// CelebA opens the aligned pictures of CelebA, a directory or a zip, all or
// some of them. partition is the path of list_eval_partition.txt; "" uses the
// official partition by number, for which the files must have their official
// names. The pictures have no labels and keep their order.
func CelebA(ctx context.Context, src, partition string, g Geometry) (*Set, error) {
	if g.size() == none {
		return nil, errors.New("CelebA needs a size or a crop, because its pictures are 178×218")
	}
	where := officialSplit
	if partition != "" {
		list, err := readPartition(ctx, partition)
		if err != nil {
			return nil, err
		}
		where = func(name string) (int, error) {
			k, ok := list[name]
			if !ok {
				return 0, fmt.Errorf("not in %s; give the list that belongs to the pictures", partition)
			}
			return k, nil
		}
	}
	t, err := openTree(ctx, src)
	if err != nil {
		return nil, err
	}
	s := &Set{Preprocessing: g.preprocessing("celeba"), Notes: t.notes(), close: t.close}
	var groups [3][]picture
	for _, f := range t.files {
		k, err := where(path.Base(f.name))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", t.at(f.name), err), t.close())
		}
		groups[k] = append(groups[k], picture{f, -1})
	}
	for k, p := range groups {
		if len(p) > 0 {
			s.Splits = append(s.Splits, t.split(celebaSplits[k], g, p))
		}
	}
	s.Schema, err = g.schema(ctx, nil, nil) // the size is given
	return s, err
}

// officialSplit is the split of a picture by its number, as in 000001.jpg.
func officialSplit(name string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSuffix(name, path.Ext(name)))
	switch {
	case err != nil || n < 1:
		return 0, errors.New("not named by a number, so its split is unknown; give --partition")
	case n <= celebaTrain:
		return 0, nil
	case n <= celebaVal:
		return 1, nil
	}
	return 2, nil
}

// readPartition reads a partition list: a file name and 0, 1 or 2 on each line.
func readPartition(ctx context.Context, path string) (map[string]int, error) {
	f, err := openRegular(ctx, path)
	if err != nil {
		return nil, err
	}
	list, err := parsePartition(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

func parsePartition(r io.Reader) (map[string]int, error) {
	list := map[string]int{}
	s := bufio.NewScanner(r) // strips \r\n
	line := 0
	for s.Scan() {
		line++
		f := strings.Fields(s.Text())
		if len(f) == 0 {
			continue
		}
		if len(f) != 2 || len(f[1]) != 1 || f[1][0] < '0' || f[1][0] > '2' {
			return nil, fmt.Errorf("line %d: %.60q, expected a file name and 0, 1 or 2", line, s.Text())
		}
		if _, ok := list[f[0]]; ok {
			return nil, fmt.Errorf("line %d: %s is listed twice", line, f[0])
		}
		list[f[0]] = int(f[1][0] - '0')
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", line+1, err)
	}
	if len(list) == 0 {
		return nil, errors.New("empty, expected a file name and 0, 1 or 2 on each line")
	}
	return list, nil
}
