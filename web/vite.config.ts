import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

/** Builds hashed files in dist/assets and an entry that takes a nonce. The CSP allows no inline code and no other origin. */
export default defineConfig({
  root: import.meta.dirname,
  base: '/',
  plugins: [react()],
  html: { cspNonce: '__ORC_NONCE__' },
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    // An inlined file would be a data: URL, which the CSP rejects.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2023',
    sourcemap: false,
    // Hide the timings of plugins from people who only want to start the service.
    rolldownOptions: { checks: { bundlerTimings: false } },
  },
})
