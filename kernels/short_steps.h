/* The Langevin steps of regressions with short rows: one body for all vector widths. Clients lie side by side in the vectors.
 *
 * Every lane does exactly what fald_hpc.kernels.glm and fald_hpc.kernels.langevin do for one client: the same operations in
 * the same order, multiply-adds fused where those are fused and nowhere else.
 */

#include "residuals.h"

/* Row l of the block becomes its column l. */
INLINE void NAME(turn)(VECTOR block[WIDTH])
{
#if WIDTH == 8
    transpose_8((__m512d *)block);
#elif WIDTH == 4
    transpose_4((__m256d *)block);
#else
    const VECTOR first = {block[0][0], block[1][0]}, second = {block[0][1], block[1][1]};
    block[0] = first, block[1] = second;
#endif
}

/* from[at[l]] in lane l. */
INLINE VECTOR NAME(picked)(const double *from, const int64_t *at)
{
#if WIDTH == 8
    return (VECTOR){from[at[0]], from[at[1]], from[at[2]], from[at[3]], from[at[4]], from[at[5]], from[at[6]], from[at[7]]};
#elif WIDTH == 4
    return (VECTOR){from[at[0]], from[at[1]], from[at[2]], from[at[3]]};
#else
    return (VECTOR){from[at[0]], from[at[1]]};
#endif
}

/* Rows of a block and vector of clients: features, weight, offset, target; the kept residuals. */
struct NAME(lanes_rows) {
    VECTOR column[LARGEST_STRIDE], kept;
};

INLINE void NAME(load_row)(const int has_reference, const struct short_steps *q, const int64_t *row, struct NAME(lanes_rows) *to)
{
    const int64_t stride = STRIDE(q->d);
    for (int64_t j = 0; j < q->d + 3; j += WIDTH) {
        VECTOR block[WIDTH] LINES;
        UNROLL for (int l = 0; l < WIDTH; ++l) block[l] = *(const VECTOR *)(q->packed + row[l] * stride + j);
        NAME(turn)(block);
        UNROLL for (int l = 0; l < WIDTH; ++l) to->column[j + l] = block[l];
    }
    if (has_reference) to->kept = NAME(picked)(q->kept, row);
}

/* A vector of clients: what its lanes have of them, zeros in lanes without one. */
struct NAME(lanes_clients) {
    VECTOR prior, scale, batch, x[MOST];
    const int64_t *rows;
    const double *private;
};

/* Clients from ``first`` on. Not inlined, as what else is done once a call: the bodies of the steps are many. */
TARGET static __attribute__((noinline)) void NAME(gather)(
    const struct short_steps *q, int64_t first, struct NAME(lanes_clients) *to)
{
    const int64_t group = first / SHORT_LANES, lane = first % SHORT_LANES;
    double *prior = (double *)&to->prior, *scale = (double *)&to->scale, *batch = (double *)&to->batch, *x = (double *)to->x;
    for (int64_t l = 0, i = first; l < WIDTH; ++l, ++i) {
        const int inside = i < q->n;
        prior[l] = inside ? q->prior[i] : 0.0;
        batch[l] = inside ? (double)q->batch[i] : 0.0;
        scale[l] = inside && q->batch[i] > 0 ? (double)q->n_rows[i] / batch[l] : 0.0;
        for (int64_t j = 0; j < q->d; ++j) x[j * WIDTH + l] = inside ? q->x[i * q->x_stride + j] : 0.0;
    }
    to->rows = q->rows + group * q->rows_stride * SHORT_LANES + lane;
    to->private = q->private + group * q->private_stride * q->d * SHORT_LANES + lane;
}

INLINE void NAME(scatter)(
    const struct short_steps *q, int64_t first, const struct NAME(lanes_clients) *from)
{
    const double *x = (const double *)from->x;
    for (int64_t l = 0; l < WIDTH && first + l < q->n; ++l)
        for (int64_t j = 0; j < q->d; ++j) q->x[(first + l) * q->x_stride + j] = x[j * WIDTH + l];
}

/* The same as load for the first block. */
TARGET static __attribute__((noinline)) void NAME(load_first)(
    int has_reference, const struct short_steps *q, const int64_t *row, struct NAME(lanes_rows) *to)
{
    NAME(load_row)(has_reference, q, row, to);
}

/* All steps of ``vectors`` vectors of clients from client ``first`` on, which is a multiple of WIDTH. The rows of a block do
 * not depend on X, so those of the next one are loaded while this one waits. */
INLINE void NAME(steps)(
    const int family, const int has_reference, const int rows, const int vectors, const struct short_steps *q, int64_t first)
{
    const int chains = rows * vectors;
    const int64_t d = q->d;
    const VECTOR minus_step = NAME(all)(-q->step_size);
    const VECTOR common_scale = NAME(all)(q->common_scale), private_scale = NAME(all)(q->private_scale);
    const int has_common = q->common_scale != 0.0, has_private = q->private_scale != 0.0;
    VECTOR gradient[MOST][VECTORS] LINES, factor[ROWS * VECTORS];
    struct NAME(lanes_rows) buffer[2][ROWS * VECTORS] LINES;
    struct NAME(lanes_clients) client[VECTORS] LINES;

    /* rows that all clients have in their minibatch, and that any has */
    int64_t fewest = q->most, most = 0;
    for (int64_t i = first; i < q->n && i < first + vectors * WIDTH; ++i) {
        if (q->batch[i] < fewest) fewest = q->batch[i];
        if (q->batch[i] > most) most = q->batch[i];
    }
    const int64_t blocks = (most + rows - 1) / rows;
    UNROLL for (int v = 0; v < vectors; ++v) {
        NAME(gather)(q, first + v * WIDTH, client + v);
        if (blocks > 0)
            UNROLL for (int m = 0; m < rows; ++m)
                NAME(load_first)(has_reference, q, client[v].rows + m * SHORT_LANES, &buffer[0][m * vectors + v]);
    }
    int now = 0;
    for (int64_t r = 0; r < q->t; ++r) {
        for (int64_t j = 0; j < d; ++j)
            UNROLL for (int v = 0; v < vectors; ++v) {
                VECTOR difference = client[v].x[j];
                if (has_reference) difference -= NAME(all)(q->reference[j]);
                gradient[j][v] = client[v].prior * difference;
            }
        for (int64_t b = 0; b < blocks; ++b) {
            const int last = b + 1 == blocks;
            if (!last || r + 1 < q->t) {
                const int64_t next = (last ? (r + 1) * q->most : r * q->most + (b + 1) * rows) * SHORT_LANES;
                UNROLL for (int m = 0; m < rows; ++m)
                    UNROLL for (int v = 0; v < vectors; ++v)
                        NAME(load_row)(has_reference, q, client[v].rows + next + m * SHORT_LANES, &buffer[!now][m * vectors + v]);
            }
            const struct NAME(lanes_rows) *z = buffer[now];
            UNROLL for (int i = 0; i < chains; ++i) factor[i] = NAME(all)(0.0);
            for (int64_t j = 0; j < d; ++j)
                UNROLL for (int i = 0; i < chains; ++i)
                    factor[i] = NAME(fused)(z[i].column[j], client[i % vectors].x[j], factor[i]);
            UNROLL for (int i = 0; i < chains; ++i) {
                const VECTOR *other = z[i].column + d;
                factor[i] = other[0] * NAME(residual)(family, factor[i] + other[1], other[2]);
                if (has_reference) factor[i] -= z[i].kept;
                factor[i] = client[i % vectors].scale * factor[i];
            }
            if ((b + 1) * rows <= fewest) {
                for (int64_t j = 0; j < d; ++j)
                    UNROLL for (int i = 0; i < chains; ++i)
                        gradient[j][i % vectors] = NAME(fused)(factor[i], z[i].column[j], gradient[j][i % vectors]);
            } else {
                for (int64_t j = 0; j < d; ++j)
                    UNROLL for (int i = 0; i < chains; ++i) {
                        VECTOR *sum = gradient[j] + i % vectors;
                        const VECTOR place = NAME(all)((double)(b * rows + i / vectors));
                        *sum = NAME(where_less)(
                            place, client[i % vectors].batch, NAME(fused)(factor[i], z[i].column[j], *sum), *sum);
                    }
            }
            now = !now;
        }
        for (int64_t j = 0; j < d; ++j)
            UNROLL for (int v = 0; v < vectors; ++v) {
                VECTOR g = gradient[j][v];
                if (has_reference) g += NAME(all)(q->shift[j]);
                VECTOR moved = NAME(fused)(minus_step, g, client[v].x[j]);
                if (has_common) moved = NAME(fused)(common_scale, NAME(all)(q->common[r * d + j]), moved);
                if (has_private)
                    moved = NAME(fused)(private_scale, *(const VECTOR *)(client[v].private + (r * d + j) * SHORT_LANES), moved);
                client[v].x[j] = moved;
            }
    }
    UNROLL for (int v = 0; v < vectors; ++v) NAME(scatter)(q, first + v * WIDTH, client + v);
}

/* not inlined: bodies that share a function take the compiler longer */
#define STEPS(STEPS_NAME, FAMILY, HAS_REFERENCE) \
TARGET static __attribute__((noinline)) void NAME(STEPS_NAME)(const struct short_steps *q) \
{ \
    for (int64_t first = 0; first < q->n; first += VECTORS * WIDTH) \
        switch ((q->most > 1) << 1 | (q->n - first > WIDTH)) { \
        case 0: NAME(steps)(FAMILY, HAS_REFERENCE, 1, 1, q, first); break; \
        case 1: NAME(steps)(FAMILY, HAS_REFERENCE, 1, VECTORS, q, first); break; \
        case 2: NAME(steps)(FAMILY, HAS_REFERENCE, ROWS, 1, q, first); break; \
        case 3: NAME(steps)(FAMILY, HAS_REFERENCE, ROWS, VECTORS, q, first); break; \
        } \
}
STEPS(linear_steps, LINEAR, 0)
STEPS(linear_differences, LINEAR, 1)
STEPS(logistic_steps, LOGISTIC, 0)
STEPS(logistic_differences, LOGISTIC, 1)
STEPS(poisson_steps, POISSON, 0)
STEPS(poisson_differences, POISSON, 1)
#undef STEPS

TARGET static void NAME(run)(const struct short_steps *q, int64_t family, int64_t has_reference)
{
    switch (family << 1 | has_reference) {
    case LINEAR << 1: NAME(linear_steps)(q); break;
    case LINEAR << 1 | 1: NAME(linear_differences)(q); break;
    case LOGISTIC << 1: NAME(logistic_steps)(q); break;
    case LOGISTIC << 1 | 1: NAME(logistic_differences)(q); break;
    case POISSON << 1: NAME(poisson_steps)(q); break;
    case POISSON << 1 | 1: NAME(poisson_differences)(q); break;
    }
}
