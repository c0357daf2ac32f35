import { type ServiceResponse, transfer } from '../../connection/connection.ts'
import type { Verb } from '../../verb.ts'

// Not imported, for the reason given in line.ts.
const { readSync } = process.getBuiltinModule('node:fs')

const output = () => import('../../output/print.ts')

export const verb: Verb = {
  name: 'service hook',
  summary: "forward an agent program's hook to the service and print the answer",
  details:
    'For programs that can only run a command where something happens in them. Standard input goes to the service\n' +
    'named by ORC_URL, with ORC_TOKEN; its answer, which may wait for a person, comes out as JSON. A hook must never\n' +
    'be in the way of the program: whatever is wrong, nothing is printed and the exit code is 0. ORC_DEBUG=1 tells\n' +
    'the reason on standard error.',
  options: [{ name: 'timeout', value: 'SECONDS', summary: 'timeout in seconds (default: none)' }],
  examples: ['orc service hook < event.json', 'orc service hook --timeout 600 < event.json'],
  // main.ts does not take this way, which reads tables.
  run: ({ option }) => postHook(['--timeout', option('timeout') ?? '0']),
}

/** Started at every step of an agent, so that it loads as little as a command does. */
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
  // The same settings may be read by a program that was started by hand, outside of any team.
  if (!address || !token) throw new Error('ORC_URL and ORC_TOKEN are not set')
  const body = readInput()
  return await transfer(
    { address, token },
    { method: 'POST', path: '/hooks', body, timeoutMs, onSent: () => void output() },
  )
}

function readTimeout(argv: readonly string[]): number {
  const [, seconds = '0'] = /^--timeout[= ](.*)$/.exec(argv.join(' ')) ?? []
  if (argv.length > 0 && !/^\d+(\.\d+)?$/.test(seconds)) throw new Error(`not understood: ${argv.join(' ')}`)
  return Number(seconds) * 1000
}

const PIECE = 64 * 1024

/** All of standard input at once: setting up a stream would take longer than reading it. */
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
      // Whoever made the pipe made it non-blocking, and has not written yet.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2)
    }
  }
}
