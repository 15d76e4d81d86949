/* The split of a value against the grids of an exact sum (fald_hpc.kernels.exact_sum.add): included by bodies that are compiled
 * once for each width, after vector_math.h.
 */

#define BINS 3

/* Adding and subtracting an anchor, 1.5 2^52 times the unit of a grid, rounds to a multiple of that unit. */
struct NAME(window) {
    VECTOR anchor[BINS];
};

/* Adds the parts of x to their sums. */
INLINE void NAME(split)(VECTOR x, const struct NAME(window) *w, VECTOR part[BINS])
{
    UNROLL for (int i = 0; i < BINS; ++i) {
        const VECTOR q = (x + w->anchor[i]) - w->anchor[i];
        part[i] += q;
        x -= q;
    }
}
