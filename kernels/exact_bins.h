/* The split of a value against the grids of an exact sum (fald_hpc.kernels.exact_sum.add): included by bodies that are compiled
 * once for each width, after vector_math.h.
 */

#define BINS 3

/* Adding and subtracting an anchor, 1.5 2^52 times the unit of a grid, rounds to a multiple of that unit. */
struct NAME(window) {
    VECTOR anchor[BINS];
};

/* Adds the two coarse parts of x to their sums; returns what is left: nothing but for values far below their window, which take
 * a second look for the third part. */
INLINE VECTOR NAME(split)(VECTOR x, const struct NAME(window) *w, VECTOR part[BINS - 1])
{
    UNROLL for (int i = 0; i < BINS - 1; ++i) {
        const VECTOR q = (x + w->anchor[i]) - w->anchor[i];
        part[i] += q;
        x -= q;
    }
    return x;
}

/* The third part of x. */
INLINE VECTOR NAME(finest)(VECTOR x, const struct NAME(window) *w)
{
    UNROLL for (int i = 0; i < BINS - 1; ++i) x -= (x + w->anchor[i]) - w->anchor[i];
    return (x + w->anchor[BINS - 1]) - w->anchor[BINS - 1];
}
