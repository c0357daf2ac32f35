/** Runs the load client in its own process. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import type { Figures, Load } from './load-client.ts'

export async function load(options: Load): Promise<Figures> {
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, 'load-client.ts'), JSON.stringify(options)],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  let output = ''
  child.stdout.on('data', (data) => {
    output += data
  })
  await new Promise((resolve) => child.once('close', resolve))
  const figures = JSON.parse(output) as Figures
  if (figures.failed > 0) throw new Error(`${figures.failed} requests of the bench failed`)
  return figures
}

export const perSecond = (rate: number) => `${Math.round(rate).toLocaleString('en')}/s`
