import { readFileSync } from 'node:fs'

const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

/** Version of the package: package.json lies beside both src/ and dist/. */
export const VERSION = manifest.version
