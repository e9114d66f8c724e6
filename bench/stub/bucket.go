package main

import (
	"math/rand"
	"sync"
	"time"
)

// A bucket of tokens: each write takes one, and without one it is refused.
type bucket struct {
	mutex    sync.Mutex
	rate     float64
	full     float64
	isHarsh  bool
	unlucky  float64 // the share that is refused at random as well
	tokens   float64
	filledAt time.Time
}

func newBucket(rate, seconds float64, isHarsh bool, unlucky float64) *bucket {
	full := rate * seconds
	return &bucket{rate: rate, full: full, isHarsh: isHarsh, unlucky: unlucky, tokens: full, filledAt: time.Now()}
}

// take returns whether a write may pass; a harsh bucket counts it in any case, down to a second of its rate.
func (b *bucket) take() bool {
	if rand.Float64() < b.unlucky {
		return false
	}
	if b.rate == 0 {
		return true
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	now := time.Now()
	b.tokens = min(b.full, b.tokens+now.Sub(b.filledAt).Seconds()*b.rate)
	b.filledAt = now
	isFree := b.tokens >= 1
	if isFree || b.isHarsh {
		b.tokens = max(-b.rate, b.tokens-1)
	}
	return isFree
}
