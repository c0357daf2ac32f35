import { readFileSync } from 'node:fs'

const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

/** The package's own version; package.json is beside both src/ and dist/. */
export const VERSION = manifest.version
