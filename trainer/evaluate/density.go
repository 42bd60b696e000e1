package main

import (
	"context"
	"errors"
	"image"
	"math"

	"ebtrain/trainer/algo"
	"ebtrain/trainer/run/picture"
	"ebtrain/trainer/trained"
)

// densityCells are the cells of the longer side of a density's map.
const densityCells = 200

// densityMap is what is said of a map of the model's density.
type densityMap struct {
	Picture string  `json:"picture,omitempty"`
	Inside  float64 `json:"inside"` // probability of the region that is shown
}

// density draws the model's density beside the data, over the data's region and a
// quarter more on each side.
func (e *evaluation) density(ctx context.Context, r *report) error {
	const margin = 0.25
	var points []float32
	_, err := e.each(ctx, e.own("points"), func(x []float32, _ []int64) error {
		points = append(points, x...)
		return nil
	})
	if err != nil {
		return err
	}
	z, err := e.logZ(ctx)
	if err != nil {
		return err
	}
	m := cells(picture.Around(points, margin))
	if m.LogP, err = e.logDensity(ctx, m.Region.Centres(m.W, m.H), z.Value); err != nil {
		return err
	}
	shown, err := besidePoints(m, points)
	if err != nil {
		return err
	}
	r.LogZ, r.Density = z, &densityMap{Picture: e.keepPicture(shown), Inside: mass(m)}
	return nil
}

// besidePoints is the map beside the points.
func besidePoints(m picture.Map, points []float32) (image.Image, error) {
	left, err := picture.Density(m, picture.Linear)
	if err != nil {
		return nil, err
	}
	right, err := picture.Scatter(points, "points of the data", m.Region)
	if err != nil {
		return nil, err
	}
	return picture.Beside(left, right), nil
}

// cells is a map of a region in square cells, as nearly as that is possible.
func cells(r picture.Region) picture.Map {
	w, h := r.X1-r.X0, r.Y1-r.Y0
	side := max(w, h) / densityCells
	return picture.Map{W: max(1, int(math.Round(w/side))), H: max(1, int(math.Round(h/side))), Region: r}
}

// logDensity is −E − log Z at points of the plane.
func (e *evaluation) logDensity(ctx context.Context, points []float32, logZ float64) (logp []float64, err error) {
	const atOnce = 2 * 1000
	look := trained.NewLook(e.trained, e.backend, "density", e.energyOf, e.o.seed)
	defer func() { err = errors.Join(err, look.Close()) }()
	for i := 0; i < len(points); i += atOnce {
		some := points[i:min(i+atOnce, len(points))]
		p, err := look.At(ctx, some, len(some)/2, int64(i/2))
		if err != nil {
			return nil, err
		}
		for _, energy := range p.Output(algo.OutputEnergy).F32() {
			logp = append(logp, -float64(energy)-logZ)
		}
	}
	return logp, nil
}

// mass is the integral of a density over its region, by the midpoint rule.
func mass(m picture.Map) (sum float64) {
	for _, l := range m.LogP {
		sum += math.Exp(l)
	}
	return sum * (m.Region.X1 - m.Region.X0) / float64(m.W) * (m.Region.Y1 - m.Region.Y0) / float64(m.H)
}
