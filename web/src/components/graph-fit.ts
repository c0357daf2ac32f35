import type { FitViewOptions, ReactFlowInstance } from '@xyflow/react'
import { useEffect, useRef } from 'react'

/** Keeps a graph fitted to its container, also after a resize or a new shape, until somebody moves it. */
export function useFitView(options: FitViewOptions, shape: string) {
  const drawing = useRef<Pick<ReactFlowInstance, 'fitView'>>(undefined)
  const isMoved = useRef(false)
  const ref = useRef<HTMLDivElement>(null)
  const fit = () => {
    if (!isMoved.current) void drawing.current?.fitView(options)
  }
  useEffect(() => {
    const sizes = new ResizeObserver(fit)
    sizes.observe(ref.current!)
    return () => sizes.disconnect()
  }, [])
  useEffect(() => {
    const next = requestAnimationFrame(fit)
    return () => cancelAnimationFrame(next)
  }, [shape])
  return {
    ref,
    onInit(instance: Pick<ReactFlowInstance, 'fitView'>) {
      drawing.current = instance
    },
    onMove(event: unknown) {
      // No event: moved by fitView or by the zoom buttons.
      if (event !== null) isMoved.current = true
    },
  }
}
