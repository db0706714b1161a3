/** The API key of all requests; only the contestant with authentication looks at it. */
export const key = 'rvk_ygxsYjJe_w0yhHgfH5wdL5cbJe1HKhOV9SIRVv52eofp4fcS0ib14evRTi';
