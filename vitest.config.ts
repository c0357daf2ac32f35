import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['tests/**/*.test.ts'],
    exclude: ['tests/long/**', 'tests/agents/**'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
