/** Builds dist/ for publishing, from src/ only. */
import { execFileSync } from 'node:child_process'
import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const dist = join(root, 'dist')

rmSync(dist, { recursive: true, force: true })
execFileSync(join(root, 'node_modules/.bin/tsc'), ['-p', 'tsconfig.build.json'], {
  cwd: root,
  stdio: 'inherit',
})

execFileSync(process.execPath, [join(root, 'scripts/build-web.ts')], { cwd: root, stdio: 'inherit' })
cpSync(join(root, 'web/dist'), join(dist, 'web'), { recursive: true })

// bin/orc.js prints this if the Node version is too old.
const help = execFileSync(process.execPath, [join(dist, 'cli/main.js'), '--help'], { encoding: 'utf8' })
writeFileSync(join(dist, 'help.txt'), help)
