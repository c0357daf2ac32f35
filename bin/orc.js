#!/usr/bin/env node
// The installed command. It must parse and run on old versions of Node too: there it looks for the npm package
// `node` beside it and starts the program with that, or says what is missing.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import nodeModule, { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const NEEDED = 24
const root = fileURLToPath(new URL('..', import.meta.url))
const major = (version) => Number.parseInt(version, 10)

if (major(process.versions.node) >= NEEDED) {
  nodeModule.enableCompileCache()
  await import('../dist/cli/main.js')
} else {
  const runtime = findRuntime()
  if (runtime) become(runtime)
  else explain(process.argv[2])
}

/** The npm package `node`, resolved as this package would resolve it, if it is new enough. */
function findRuntime() {
  try {
    const manifest = createRequire(import.meta.url).resolve('node/package.json')
    const { version } = JSON.parse(readFileSync(manifest, 'utf8'))
    return major(version) >= NEEDED ? join(dirname(manifest), 'bin', 'node') : undefined
  } catch {
    return undefined
  }
}

function become(runtime) {
  const child = spawn(runtime, [join(root, 'bin', 'orc.js'), ...process.argv.slice(2)], { stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      // A terminal sends Ctrl-C to the whole process group: the child has it already.
      if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
    })
  }
  child.on('error', (error) => {
    console.error(`orc: cannot start ${runtime}: ${error.message}`)
    process.exitCode = 1
  })
  child.on('exit', (code, signal) => {
    if (signal) {
      process.removeAllListeners(signal)
      process.kill(process.pid, signal)
    }
    process.exitCode = code ?? 1
  })
}

function explain(argument) {
  const hint = `orc needs Node ${NEEDED} or newer to run; this is ${process.versions.node}. Try: npm install node@${NEEDED}`
  if (argument === '--version' || argument === '-V') {
    console.log(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version)
  } else if (argument === undefined || argument === '--help' || argument === '-h' || argument === 'help') {
    process.stdout.write(readFileSync(join(root, 'dist', 'help.txt')))
    console.error(`\n${hint}`)
  } else {
    console.error(hint)
    process.exitCode = 1
  }
}
