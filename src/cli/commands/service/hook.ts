import { type ServiceResponse, transfer } from '../../connection/connection.ts'
import type { Verb } from '../../verb.ts'

// `import` would take longer, and a hook runs at every step of an agent.
const { readSync } = process.getBuiltinModule('node:fs')

const output = () => import('../../output/print.ts')

export const verb: Verb = {
  name: 'service hook',
  summary: "forward an agent program's hook to the service and print the answer",
  details:
    'For agent programs whose hooks run a command. Sends standard input to the service at ORC_URL with ORC_TOKEN and\n' +
    'prints its JSON answer, which may wait for a person. A hook must never block the program: on any error it prints\n' +
    'nothing and exits with 0. Set ORC_DEBUG=1 to print the reason to standard error.',
  options: [{ name: 'timeout', value: 'SECONDS', summary: 'timeout in seconds (default: none)' }],
  examples: ['orc service hook < event.json', 'orc service hook --timeout 600 < event.json'],
  // main.ts calls postHook directly, which loads fewer files.
  run: ({ option }) => postHook(['--timeout', option('timeout') ?? '0']),
}

/** Runs at every step of an agent, so it loads as few files as possible. */
export async function postHook(argv: readonly string[]): Promise<number> {
  try {
    const answered = await post(readTimeout(argv))
    if (answered.status !== 200) throw new Error(`the service answered ${answered.status}: ${answered.body}`)
    ;(await output()).printRaw(`${answered.body}\n`)
  } catch (error) {
    if (process.env.ORC_DEBUG) (await output()).complain(`orc hook: ${(error as Error).message}`)
  }
  return 0
}

async function post(timeoutMs: number): Promise<ServiceResponse> {
  const { ORC_URL: address, ORC_TOKEN: token } = process.env
  // A program that a person starts outside of any team may read the same hook settings.
  if (!address || !token) throw new Error('ORC_URL and ORC_TOKEN are not set')
  const body = readInput()
  return await transfer(
    { address, token },
    { method: 'POST', path: '/hooks', body, timeoutMs, onSent: () => void output() },
  )
}

function readTimeout(argv: readonly string[]): number {
  const [, seconds = '0'] = /^--timeout[= ](.*)$/.exec(argv.join(' ')) ?? []
  if (argv.length > 0 && !/^\d+(\.\d+)?$/.test(seconds))
    throw new Error(`unexpected arguments: ${argv.join(' ')}`)
  return Number(seconds) * 1000
}

const PIECE = 64 * 1024

/** Reads standard input synchronously, because setting up a stream takes longer than reading it. */
function readInput(): string {
  const pieces: Buffer[] = []
  for (;;) {
    const piece = Buffer.allocUnsafe(PIECE)
    try {
      const length = readSync(0, piece)
      if (length === 0) return Buffer.concat(pieces).toString('utf8')
      pieces.push(piece.subarray(0, length))
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'EOF') return Buffer.concat(pieces).toString('utf8')
      if (code !== 'EAGAIN') throw error
      // A non-blocking pipe is empty.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2)
    }
  }
}
