/**
 * The command line, bundled from the current sources. Tests start it hundreds of times, most of them to kill
 * it, and loading a thousand modules takes half a second of CPU time each time.
 */
import { createHash } from 'node:crypto'
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'

const ROOT = join(import.meta.dirname, '..', '..')
const SOURCE = join(ROOT, 'src', 'cli', 'main.ts')
const PLACE = join(ROOT, '.cache', 'program')
const DAY_MS = 24 * 3600_000

/** The hash of the current sources. */
function made(): string {
  const hash = createHash('sha256')
  for (const file of ['package-lock.json', ...globSync('src/**/*.ts', { cwd: ROOT }).sort()]) {
    const { mtimeMs, size } = statSync(join(ROOT, file))
    hash.update(`${file} ${mtimeMs} ${size}\n`)
  }
  return join(PLACE, hash.digest('hex').slice(0, 16), 'main.js')
}

/** The file to run with Node. Benchmarks, and tests whose sources changed since they began, run the sources themselves. */
export function programFile(): string {
  if (process.env.VITEST === undefined) return SOURCE
  const file = made()
  return existsSync(file) ? file : SOURCE
}

/** Builds the bundle before all tests; several test runs may do so at once. */
export async function setup() {
  const file = made()
  if (existsSync(file)) return
  mkdirSync(PLACE, { recursive: true })
  for (const name of readdirSync(PLACE)) {
    const earlier = join(PLACE, name)
    if (statSync(earlier).mtimeMs < Date.now() - DAY_MS) rmSync(earlier, { recursive: true, force: true })
  }
  const folder = mkdtempSync(join(PLACE, 'new-'))
  const { build } = await import('vite')
  try {
    await build({
      ...{ root: ROOT, configFile: false, publicDir: false, logLevel: 'error', plugins: [inPlace] },
      // Includes all packages.
      ssr: { noExternal: true },
      build: { ssr: SOURCE, outDir: folder, emptyOutDir: false, target: 'esnext', minify: false },
    })
    renameSync(folder, dirname(file))
  } catch (error) {
    rmSync(folder, { recursive: true })
    // Another test run has built it, or a source is broken, which only fails the tests that start it.
    if (!existsSync(file)) process.stderr.write(`The sources cannot be put together: ${error}\n`)
  }
}

/** Puts pages and examples where the sources would find them. */
const inPlace = {
  name: 'in-place',
  transform: {
    filter: { id: /\/src\/.*\.ts$/, code: 'import.meta.' },
    handler: (code: string, id: string) =>
      code
        .replaceAll('import.meta.dirname', JSON.stringify(dirname(id)))
        .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href)),
  },
}
