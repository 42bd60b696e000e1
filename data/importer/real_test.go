package importer

import (
	"os"
	"path/filepath"
	"testing"

	"ebtrain/data"
)

// real is a path under the shared data, which is not part of the repository.
func real(t *testing.T, path string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("real data are left out under -short")
	}
	p := filepath.Join("..", "..", "..", "shared", "data", path)
	if _, err := os.Stat(p); err != nil {
		t.Skipf("needs real data, which are no part of the repository: %v", err)
	}
	return p
}

func TestRealMNIST(t *testing.T) {
	s, err := MNIST(t.Context(), real(t, "mnist"), Geometry{})
	dir, x := imported(t, s, err, Options{})
	if x.Splits["train"].Samples != 60000 || x.Splits["test"].Samples != 10000 {
		t.Errorf("splits %+v", x.Splits)
	}
	_, b := load(t, dir, "train")
	count := make([]int, 10)
	for _, l := range b.Labels {
		count[l]++
	}
	// LeCun's counts of the training digits.
	for l, want := range []int{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949} {
		if count[l] != want {
			t.Errorf("%d training pictures of %d, want %d", count[l], l, want)
		}
	}
	var sum float64
	for _, v := range b.Values {
		sum += float64(v)
	}
	if mean := sum / float64(len(b.Values)) / 255; mean < 0.13065 || mean > 0.13067 { // the usual 0.1307
		t.Errorf("mean pixel %.5f, want 0.13066", mean)
	}
}

func TestRealCIFARBinary(t *testing.T) {
	src := real(t, "cifar10/cifar-10-batches-bin-subset")
	s, err := CIFAR10(t.Context(), []string{src}, Geometry{})
	dir, x := imported(t, s, err, Options{})
	if x.Splits["train"].Samples != 4000 || x.Splits["test"].Samples != 1017 {
		t.Errorf("splits %+v", x.Splits)
	}
	raw, err := os.ReadFile(filepath.Join(src, "test_batch.bin"))
	if err != nil {
		t.Fatal(err)
	}
	_, b := load(t, dir, "test")
	for i, l := range b.Labels {
		rec := raw[i*cifarRecord : (i+1)*cifarRecord]
		if l != int64(rec[0]) || string(b.Values[i*cifarPixels:(i+1)*cifarPixels]) != string(rec[1:]) {
			t.Fatalf("sample %d is not record %d", i, i)
		}
	}
}

func TestRealCIFARTar(t *testing.T) {
	labels, err := os.ReadFile(real(t, "cifar10/cifar10_test_labels_10000.u8"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := CIFAR10(t.Context(), []string{real(t, "cifar10/cifar10_jpeg_test.wds.tar.zst")}, Geometry{})
	dir, x := imported(t, s, err, Options{Limit: 2000})
	if x.Splits["test"].Samples != 2000 {
		t.Errorf("splits %+v", x.Splits)
	}
	schema, b := load(t, dir, "test")
	for i, l := range b.Labels {
		if l != int64(labels[i]) {
			t.Fatalf("sample %d has label %d, want %d", i, l, labels[i])
		}
	}
	if schema.Classes[9] != "truck" {
		t.Errorf("classes %v", schema.Classes)
	}
}

func TestRealCelebA(t *testing.T) {
	src := real(t, "celeba/img_align_celeba_subset9000.zip")
	byList, err := CelebA(t.Context(), src, real(t, "celeba/list_eval_partition.txt"), Geometry{Crop: data.Square(160), Size: data.Square(32)})
	if err != nil {
		t.Fatal(err)
	}
	byNumber, err := CelebA(t.Context(), src, "", Geometry{Crop: data.Square(160), Size: data.Square(32)})
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range []int64{7200, 900, 900} {
		if byList.Splits[i].Count != n || byNumber.Splits[i].Count != n {
			t.Errorf("%s: %d by list, %d by number, want %d", byList.Splits[i].Name, byList.Splits[i].Count, byNumber.Splits[i].Count, n)
		}
	}
	if err := byNumber.Close(); err != nil {
		t.Error(err)
	}
	dir, _ := imported(t, byList, nil, Options{Limit: 100})
	_, b := load(t, dir, "train")
	var sum float64
	for _, v := range b.Values {
		sum += float64(v)
	}
	// Faces are neither black nor white on average.
	if mean := sum / float64(len(b.Values)); mean < 90 || mean > 150 {
		t.Errorf("mean pixel %.1f", mean)
	}
}
