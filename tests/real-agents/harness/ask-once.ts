import { execFile } from 'node:child_process'
import type { Home } from './home.ts'

/** Output of the program when it runs without a terminal until it ends. */
export async function askOnce(
  { env, settings }: Home,
  cwd: string,
  args: readonly string[],
): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const child = execFile(settings.command, args, { cwd, env, timeout: 150_000 }, (error, stdout, stderr) =>
    error ? reject(new Error(`${error.message}\n${stdout}\n${stderr}`)) : resolve(stdout),
  )
  // Some of them read on until the end of their input.
  child.stdin?.end()
  return promise
}
