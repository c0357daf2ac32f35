import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

/** Files with hashed names in dist/assets, and an entry that takes a nonce; nothing from elsewhere, nothing inline. */
export default defineConfig({
  root: import.meta.dirname,
  base: '/',
  plugins: [react()],
  html: { cspNonce: '__ORC_NONCE__' },
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    // An inlined file would be a data: address, which the CSP refuses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2023',
    sourcemap: false,
    // How long a plugin took is no news to whoever starts it for the first time.
    rolldownOptions: { checks: { bundlerTimings: false } },
  },
})
